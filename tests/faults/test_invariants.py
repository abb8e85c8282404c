"""The list of promises finds what breaks them: each is planted once."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from base.clock import database_now
from boxes.models import Box
from conversations.services import ensure_conversation
from localbox.store.database import Database
from runs.models import Run
from tests.faults.invariants import INVARIANTS, broken
from tests.faults.known_runs import Known
from tests.faults.looks import World
from tests.faults.random_round import AT_WORK, UNSETTLED

pytestmark = pytest.mark.django_db
MARKER = "oab-test-0000"
SECONDS_UP = 100


def rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


class Provider:
    """The provider's own records, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "private").mkdir()
        path = folder / "private" / "localbox.sqlite3"
        Database(path).close()
        self._link = sqlite3.connect(path)

    def add(self, box_id: str, state: str = "archived", name: str = MARKER) -> None:
        self._link.execute(
            "insert into boxes (id, name, state, size, env, no_env, created_at, updated_at) values (?, ?, ?, 'default', '{}', 0, 0, 0)",
            (box_id, name, state),
        )
        self._link.execute("insert into stretches values (?, 0, ?, 1)", (box_id, SECONDS_UP))
        self._link.commit()

    def leave(self, box_id: str, name: str, text: str) -> None:
        """A file in the box's home."""
        home = self.folder / "boxes" / box_id / "home"
        home.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


@pytest.fixture
def world(provider: Provider) -> World:
    return World(
        rows=rows, url="http://127.0.0.1:9", provider_folder=provider.folder, marker=MARKER, runs={}, accepted={}, logs={}, changed=[]
    )  # fmt: skip


@pytest.fixture
def box(owner: Any, provider: Provider) -> Box:
    """A box that was up for a while, stopped, and settled at what the provider's meter says."""
    from localbox.sizes import SECONDS_PER_DOLLAR

    provider.add("bx_1")
    now = database_now()
    return Box.objects.create(
        conversation=ensure_conversation(owner), box_id="bx_1", state="archived", setup_status="done", stopped_at=now,
        stop_reason="user_requested", lifetime_seconds=SECONDS_UP, usage_settled_at=now, marked_at=now,
        settled_cost_microusd=round(1e6 * round(SECONDS_UP / SECONDS_PER_DOLLAR, 6)),
    )  # fmt: skip


@pytest.fixture
def run(box: Box) -> Run:
    """A run on that box which ended, having printed a word."""
    now = database_now()
    made = Run.objects.create(
        conversation=box.conversation, conversation_box=box, requesting_principal={}, command="echo word",
        idempotency_key="key", run_directory="/tmp/x", admitted_at=now, deadline_at=now + timedelta(hours=1),
        next_step_at=None,
    )  # fmt: skip
    Run.objects.filter(pk=made.pk).update(state="completed", exit_status=0, finished_at=now)
    return made


@pytest.fixture
def known(run: Run, world: World, provider: Provider) -> World:
    """The world in which that run is known and was told."""
    provider.leave("bx_1", "counter", "key\n")
    known = Known("key", "echo word", "word\n")
    return replace(
        world, runs={"key": known}, logs={str(run.pk): "word\n"}, accepted={"box_runs": {str(run.pk)}}
    )


def found(world: World) -> list[str]:
    return list(broken(world))


def test_nothing_is_found_where_everything_is_as_promised(known: World) -> None:
    assert found(known) == []
    assert rows(AT_WORK) == rows(UNSETTLED) == []


def test_the_promises_are_told_apart() -> None:
    promises = [invariant.promise for invariant in INVARIANTS]

    assert len(set(promises)) == len(promises)


def test_a_box_that_nobody_claims_and_that_is_up_is_found(world: World, provider: Provider) -> None:
    provider.add("bx_9", state="ready")

    assert found(world) == [
        "every box of the provider has a row or is reported as a leak", "no box of the provider is up"
    ]  # fmt: skip


def test_a_row_without_a_box_is_found(world: World, box: Box, provider: Provider) -> None:
    provider._link.execute("delete from stretches")
    provider._link.execute("delete from boxes")
    provider._link.commit()

    assert "every row's box exists" in found(world)


@pytest.mark.parametrize(("statement", "promise"), [
    ("insert into stretches values ('bx_1', 200, 201, 1)", "no box was started again"),
    ("update stretches set ended_at = 50", "what a box cost is what the provider's meter says"),
    ("update boxes set name = 'another'", "every box that was named has the installation's name"),
])  # fmt: skip
def test_what_the_provider_says_otherwise_is_found(
    known: World, provider: Provider, statement: str, promise: str
) -> None:
    provider._link.execute(statement)
    provider._link.commit()

    assert promise in found(known)


@pytest.mark.parametrize(("counter", "promise"), [
    ("key\nkey\n", "no command ran twice"),
    ("key\nother\n", "no command ran that no row asked for"),
    ("", "the end of every run is true"),
])  # fmt: skip
def test_what_a_command_left_otherwise_is_found(
    known: World, provider: Provider, counter: str, promise: str
) -> None:
    provider.leave("bx_1", "counter", counter)

    assert found(known) == [promise]


def test_output_that_is_not_whole_is_found(known: World, run: Run) -> None:
    assert found(replace(known, logs={str(run.pk): "wor"})) == [
        "the output of every run that ended by itself is whole"
    ]


def test_what_was_accepted_and_is_gone_is_found(known: World) -> None:
    assert found(replace(known, accepted={"work_jobs": {"nowhere"}})) == [
        "everything that was accepted is there"
    ]


def test_a_run_that_is_still_due_is_found(known: World, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(next_step_at=database_now())

    assert found(known) == ["every run has one end, and nobody is at work on it"]


def test_a_history_that_says_otherwise_is_found(known: World, run: Run) -> None:
    with connection.cursor() as cursor:
        cursor.execute("set constraints all immediate; alter table box_runs_history disable trigger user")
    rows("update box_runs_history set state = 'dispatched' where state = 'completed' returning 1")

    assert found(known) == ["the history of every run ends as its row"]
