"""An owner's browser, and rows of the ledgers for it to show."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from base.clock import database_now
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ensure_conversation
from runs.models import Run
from tests.fakes.fixtures import fake, provider

__all__ = ["fake", "provider"]


def signed_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture
def browser(owner: User) -> Client:
    return signed_in(owner)


@pytest.fixture
def conversation(owner: User) -> Conversation:
    return ensure_conversation(owner)


def make_box(conversation: Conversation, label: str, *, age: float = 60, **fields: Any) -> Box:
    values: dict[str, Any] = {
        "box_id": f"bx_{label}",
        "state": "ready",
        "setup_status": "done",
        "created_at": database_now() - timedelta(seconds=age),
    }
    return Box.objects.create(conversation=conversation, label=label, **(values | fields))


def make_run(on: Box, key: str, *, age: float = 30, output: str = "", **fields: Any) -> Run:
    now = database_now()
    values: dict[str, Any] = {
        "requesting_principal": {"type": "user", "id": "1"},
        "command": "make test",
        "run_directory": "/home/user/run",
        "admitted_at": now - timedelta(seconds=age),
        "deadline_at": now + timedelta(hours=1),
        "output": output,
        "last_output_offset": len(output.encode()),
    }
    if fields.get("state") in Run.TERMINAL_STATES:
        values["finished_at"] = now
    return Run.objects.create(
        conversation=on.conversation, conversation_box=on, idempotency_key=key, **(values | fields)
    )
