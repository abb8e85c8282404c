"""Runs in real boxes: a `localbox` for the session, a fresh box and its row for a test."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from boxes.client import client
from boxes.errors import Refused
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ensure_conversation
from runs.models import Run
from runs.services import start_run
from tests.fakes.fixtures import fake, provider  # noqa: F401 - pytest finds fixtures by name
from tests.fakes.provider import FakeProvider
from tests.localbox.server import LocalboxServer
from tests.waiting import eventually


@pytest.fixture(scope="session")
def localbox() -> Iterator[LocalboxServer]:
    """One real provider for every test of a worker process."""
    with LocalboxServer() as server:
        yield server


@pytest.fixture
def provider_settings(localbox: LocalboxServer, settings: Any) -> None:
    settings.BOX_API = {
        "base_url": localbox.base_url,
        "api_key": localbox.key,
        "retry_delay_ms": 0,
        "run_poll_interval_ms": 200,
    }


@pytest.fixture
def conversation(db: None) -> Conversation:
    return ensure_conversation(f"runs-{uuid.uuid4()}")


@pytest.fixture
def make_box(provider_settings: None) -> Iterator[Callable[..., Box]]:
    """Makes boxes that really exist; they are stopped after the test."""
    made: list[str] = []

    def make(conversation: Conversation) -> Box:
        created = client().create(str(uuid.uuid4()), ttl_seconds=3600)
        made.append(created.id)
        eventually(lambda: client().get(created.id).is_up)
        return Box.objects.create(
            conversation=conversation, box_id=created.id, state="ready", setup_status="done"
        )

    yield make
    for box_id in made:
        with contextlib.suppress(Refused):  # the test has stopped it
            client().stop(box_id, force=True)


@pytest.fixture
def box(make_box: Callable[..., Box], conversation: Conversation) -> Box:
    return make_box(conversation)


@pytest.fixture
def start(box: Box) -> Callable[..., Run]:
    """`start(command)` admits a run on the test's box."""

    def begin(command: str, key: str | None = None, on: Box = box) -> Run:
        principal = {"type": "user", "id": "tester"}
        return start_run(on.conversation_id, on.pk, principal, command, key or str(uuid.uuid4()))

    return begin


@pytest.fixture
def fake_box(provider: FakeProvider, conversation: Conversation) -> Box:  # noqa: F811 - it is the fixture
    """A box at the fake provider, which really runs commands, and its row."""
    provider.execute_commands()
    made = provider.add_box()
    return Box.objects.create(conversation=conversation, box_id=made.id, state="ready", setup_status="done")


@pytest.fixture
def begin(fake_box: Box) -> Callable[..., Run]:
    """`begin(command)` admits a run on the test's box at the fake provider."""

    def admit(command: str, key: str | None = None, principal: dict[str, Any] | None = None) -> Run:
        principal = principal or {"type": "user", "id": "tester"}
        return start_run(fake_box.conversation_id, fake_box.pk, principal, command, key or str(uuid.uuid4()))

    return admit


@pytest.fixture
def make_run(conversation: Conversation) -> Callable[..., Run]:
    """Makes rows without a provider: a run on a new box row of the test's conversation."""

    def make(**changes: Any) -> Run:
        now = timezone.now()
        if "conversation_box" not in changes:
            box_id = f"bx_{uuid.uuid4().hex[:8]}"
            changes["conversation_box"] = Box.objects.create(
                conversation=conversation, box_id=box_id, label=box_id, state="ready", setup_status="done"
            )
        values: dict[str, Any] = {
            "conversation": conversation,
            "requesting_principal": {"type": "user", "id": "tester"},
            "command": "true",
            "idempotency_key": str(uuid.uuid4()),
            "run_directory": f"/tmp/openagents-box-runs/{uuid.uuid4()}",
            "admitted_at": now,
            "deadline_at": now + timedelta(seconds=600),
        }
        return Run.objects.create(**values | changes)

    return make


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Path]:
    """A file to which a command appends a line each time it really runs."""
    tmp_path.chmod(0o777)
    file = tmp_path / "counter"
    file.touch()
    file.chmod(0o666)
    return file
