"""Rows of the ledgers at times of the test's choice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from accounts.models import User
from base.clock import database_now
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ensure_conversation
from runs.models import Run


@pytest.fixture
def now(db: None) -> datetime:
    return database_now()


@pytest.fixture
def midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def conversation(owner: User) -> Conversation:
    return ensure_conversation(owner)


MakeBox = Callable[..., Box]
MakeRun = Callable[..., Run]


@pytest.fixture
def make_box(conversation: Conversation, now: datetime) -> MakeBox:
    """`make_box(stopped_at=..., **fields)`; active by default."""
    made = iter(range(10_000))

    def make(**fields: Any) -> Box:
        label = f"box-{next(made)}"
        values: dict[str, Any] = {
            "box_id": f"bx_{label}",
            "label": label,
            "state": "ready",
            "created_at": now,
        }
        if fields.get("stopped_at"):
            values |= {"state": "archived", "stop_reason": "user_requested", "lifetime_seconds": 60}
        return Box.objects.create(conversation=conversation, **(values | fields))

    return make


@pytest.fixture
def make_run(make_box: MakeBox, now: datetime) -> MakeRun:
    """`make_run(state, admitted_at=...)` on a box of its own."""

    def make(state: str, **fields: Any) -> Run:
        box = make_box(stopped_at=now)
        values: dict[str, Any] = {
            "requesting_principal": {"type": "user", "id": "1"},
            "command": "make",
            "idempotency_key": str(box.pk),
            "run_directory": "/home/user/run",
            "admitted_at": now,
            "deadline_at": now + timedelta(hours=1),
            "state": state,
        }
        if state in Run.TERMINAL_STATES:
            values["finished_at"] = now
        return Run.objects.create(conversation=box.conversation, conversation_box=box, **(values | fields))

    return make
