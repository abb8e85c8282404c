"""A ledger and a provider that agree, for tests that let them disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base import hooks
from base.clock import database_now
from boxes.models import Box
from boxes.services import provider_ownership_marker
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.fakes.fixtures import fake, provider  # noqa: F401 - pytest finds fixtures by name
from tests.fakes.provider import FakeProvider

Pair = Callable[..., Box]


@pytest.fixture
def conversation(owner: Any) -> Conversation:
    return ensure_conversation(owner)


@pytest.fixture
def make_row(conversation: Conversation) -> Pair:
    """`make_row(box_id, age=0, **fields)` is a ready box in the ledger alone, made `age` seconds ago."""

    def make(box_id: str | None = "bx_8bhkse3n", *, age: float = 0, **fields: Any) -> Box:
        values = {
            "conversation": conversation,
            "state": "ready",
            "setup_status": "done",
            "created_at": database_now() - timedelta(seconds=age),
        }
        return Box.objects.create(box_id=box_id, **(values | fields))

    return make


@pytest.fixture
def pair(make_row: Pair, provider: FakeProvider) -> Pair:  # noqa: F811
    """`pair(box_id, age=0, row={...}, **fields)` is a box of ours, up at the provider and in the ledger."""

    def make(
        box_id: str = "bx_8bhkse3n", *, age: float = 0, row: dict[str, Any] | None = None, **fields: Any
    ) -> Box:
        provider.add_box(box_id, age=age, **({"name": provider_ownership_marker()} | fields))
        return make_row(box_id, age=age, **(row or {}))

    return make


@pytest.fixture
def incidents(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was reported to staff during the test."""
    reported: list[dict[str, Any]] = []
    monkeypatch.setattr(hooks.incident_reporter, "_callables", [reported.append])
    return reported


@contextmanager
def refused(box: Box, when: str = "true") -> Iterator[None]:
    """Let the database refuse every update of this row, or those that `when` (of `new`) says."""
    with connection.cursor() as cursor:
        cursor.execute(
            "create function refuse_row() returns trigger language plpgsql as"
            f" $$ begin if {when} then raise exception 'not this row'; end if; return new; end $$"
        )
        cursor.execute(
            "create trigger refuse_row before update on conversation_boxes for each row"
            f" when (old.id = '{box.pk}') execute function refuse_row()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("set constraints all immediate")
            cursor.execute("drop function refuse_row() cascade")


def again(box: Box) -> Box:
    """The row as it is now."""
    return Box.objects.get(pk=box.pk)


@pytest.fixture(params=["get", "list"])
def evidence(request: pytest.FixtureRequest, box_api: Callable[..., None]) -> str:
    """Both policies: what holds for one holds for the other."""
    box_api(reconcile_evidence=request.param)
    return str(request.param)
