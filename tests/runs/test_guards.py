"""What the database itself refuses, whoever writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from runs.models import Run
from runs.services import finish, record_poll
from runs.states import ACTIVE, MOVES, TERMINAL, RunState

pytestmark = pytest.mark.django_db
MakeRun = Callable[..., Run]

FROZEN = {
    "state": "running",
    "exit_status": 7,
    "exit_signal": "SIGKILL",
    "timed_out": True,
    "failure_reason": "another",
    "output": "another",
    "output_base_offset": 1,
    "last_output_offset": 99,
    "received_offset": 99,
    "dropped_bytes": 5,
    "pid": 4,
    "dispatch_attempted_at": "2026-01-01T00:00:00Z",
    "probe_attempted_at": "2026-01-01T00:00:00Z",
    "dispatched_at": "2026-01-01T00:00:00Z",
    "started_at": "2026-01-01T00:00:00Z",
    "finished_at": "2026-01-01T00:00:00Z",
    "cancellation_requested_at": "2026-01-01T00:00:00Z",
    "cancellation_effective_at": "2026-01-01T00:00:00Z",
}
WRITABLE = {
    "kill_confirmed": True,
    "kill_attempts": 3,
    "lease_owner": 5,
    "lease_expires_at": "2026-01-01T00:00:00Z",
    "generation": 9,
    "next_step_at": None,
    "calls_resume_at": "2026-01-01T00:00:00Z",
    "step_failures": 2,
}


def sql(statement: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def put(run: Run, column: str, value: Any) -> None:
    sql(f"update box_runs set {column} = %s where id = %s", value, run.pk)


@pytest.mark.parametrize("column", FROZEN)
def test_an_ended_run_is_frozen(make_run: MakeRun, column: str) -> None:
    run = finish(make_run().pk, "cancelled")

    with pytest.raises(DatabaseError, match="terminal run is immutable"):
        put(run, column, FROZEN[column])


@pytest.mark.parametrize("column", WRITABLE)
def test_its_kill_can_go_on_after_the_end(make_run: MakeRun, column: str) -> None:
    run = make_run(kill_confirmed=False)
    finish(run.pk, "timed_out")

    put(run, column, WRITABLE[column])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "00000000-0000-4000-8000-000000000003"),
        ("command", "rm -rf /"),
        ("idempotency_key", "another"),
        ("run_directory", "/elsewhere"),
        ("requesting_principal", '{"type": "user", "id": "thief"}'),
        ("admitted_at", "2020-01-01T00:00:00Z"),
        ("conversation_id", "00000000-0000-4000-8000-000000000001"),
        ("conversation_box_id", "00000000-0000-4000-8000-000000000002"),
    ],
)
def test_who_asked_for_what_never_changes(make_run: MakeRun, column: str, value: str) -> None:
    with pytest.raises(DatabaseError, match="run identity is immutable"):
        put(make_run(), column, value)


@pytest.mark.parametrize("column", ["cancellation_requested_at", "dispatched_at", "started_at"])
def test_the_first_time_of_what_happens_once_is_kept(make_run: MakeRun, column: str) -> None:
    run = make_run()
    put(run, column, "2026-01-01T00:00:00Z")

    with pytest.raises(DatabaseError, match="run identity is immutable"):
        put(run, column, "2026-01-02T00:00:00Z")


@pytest.mark.parametrize("before", RunState.values)
@pytest.mark.parametrize("after", RunState.values)
def test_only_the_lawful_moves_are_possible(make_run: MakeRun, before: str, after: str) -> None:
    run = make_run(state=before)

    if before == after or (before, after) in MOVES:
        put(run, "state", after)
    else:
        with pytest.raises(DatabaseError, match=f"invalid {before} run transition|terminal run is immutable"):
            put(run, "state", after)


def test_the_moves_are_those_of_a_run_that_goes_forward() -> None:
    assert all(before in ACTIVE for before, _ in MOVES)
    assert {after for before, after in MOVES if before == "running"} == {state.value for state in TERMINAL}


def test_a_confirmed_kill_stays_confirmed(make_run: MakeRun) -> None:
    run = make_run(kill_confirmed=True)

    with pytest.raises(DatabaseError, match="a confirmed kill stays confirmed"):
        put(run, "kill_confirmed", False)


def test_no_run_is_ever_deleted(make_run: MakeRun) -> None:
    run = make_run()

    with pytest.raises(DatabaseError, match="Cannot delete"):
        sql("delete from box_runs where id = %s", run.pk)


@pytest.mark.parametrize(
    "values",
    [
        {"state": "resting"},
        {"command": ""},
        {"command": "é" * 4001},
        {"idempotency_key": ""},
        {"idempotency_key": "é" * 129},
        {"output_base_offset": -1},
        {"output_base_offset": 5, "last_output_offset": 4},
        {"dropped_bytes": -1},
    ],
)
def test_values_out_of_bounds_are_refused(make_run: MakeRun, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match="_check"), transaction.atomic():
        make_run(**values)


@pytest.mark.parametrize("state", ACTIVE)
def test_a_box_has_one_living_run(make_run: MakeRun, state: str) -> None:
    first = make_run(state=state)

    with pytest.raises(IntegrityError, match="box_runs_one_active_per_box_index"), transaction.atomic():
        make_run(conversation_box=first.conversation_box)
    make_run(conversation_box=first.conversation_box, state="completed")


def test_a_conversation_uses_a_key_once(make_run: MakeRun) -> None:
    make_run(idempotency_key="same")

    with pytest.raises(IntegrityError, match="box_runs_conversation_key_index"), transaction.atomic():
        make_run(idempotency_key="same", state="completed")


def test_a_box_with_runs_is_kept(make_run: MakeRun) -> None:
    run = make_run()

    with pytest.raises(DatabaseError):
        sql("delete from conversation_boxes where id = %s", run.conversation_box_id)


def test_a_log_has_no_overlaps_at_its_beginnings_and_no_empty_pieces(make_run: MakeRun) -> None:
    run = record_poll(make_run().pk, {"present": True, "log_size": 5, "output": "hello"})
    insert = (
        "insert into box_run_log_chunks (run_id, raw_start, raw_end, text_bytes, pieces, data)"
        " values (%s, %s, %s, 1, '[]', '')"
    )

    with pytest.raises(IntegrityError, match="box_run_log_chunks_start_index"):
        sql(insert, run.pk, 0, 9)
    with pytest.raises(IntegrityError, match="box_run_log_chunks_range_check"):
        sql(insert, run.pk, 9, 9)


def test_every_transition_leaves_a_line_of_history_and_output_none(make_run: MakeRun) -> None:
    run = make_run()
    for text in ("a", "b", "c"):
        record_poll(run.pk, {"present": True, "log_size": 1 + ord(text) - ord("a"), "output": text})
    finish(run.pk, "completed", 0)

    lines = run.history.order_by("pgh_id").values_list("state", "exit_status")

    assert list(lines) == [("admitted", None), ("running", None), ("completed", 0)]


def test_history_is_not_rewritten(make_run: MakeRun) -> None:
    run = make_run()

    with pytest.raises(DatabaseError, match="Cannot update or delete"):
        sql("update box_runs_history set state = 'lost' where pgh_obj_id = %s", run.pk)
