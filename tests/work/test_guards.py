"""What the database itself refuses, whoever writes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from conversations.services import ensure_conversation
from tests.work.conftest import JobOf, delegation_attributes, machine_for, new_user, outcome_of
from work.models import Job, JobStep, Machine
from work.models.job import FROZEN, IDENTITY
from work.models.step import FROZEN as STEP_FROZEN
from work.models.step import IDENTITY as STEP_IDENTITY
from work.services import claim_for_run, complete_job_step, finish_job
from work.states import MOVES, STEP_MOVES, JobStatus, StepStatus

pytestmark = pytest.mark.django_db

DIGEST = "a" * 64
OTHER: dict[str, Any] = {
    "conversation": uuid.uuid4(), "owner_visitor": uuid.uuid4(), "machine": uuid.uuid4(), "surface": "voice",
    "goal": "another", "context_hint": "another", "requesting_tool_step_ref": "another", "kind": "delegation",
    "authority_snapshot": '{"a": 1}', "budget_snapshot": '{"a": 1}', "token_budget": 7, "cost_budget_microusd": 7,
    "keep_boxes": True, "created_at": "2020-01-01T00:00:00Z", "status": "running", "report": "another",
    "error_code": "another", "usage": '{"a": 1}', "completed_at": "2020-01-01T00:00:00Z",
    "delegation": '{"resume_session_id": "late"}', "model_id": "another", "instruction_digest": DIGEST,
    "tool_catalog_digest": DIGEST, "memory_snapshot_ref": "another", "tool_call_count": 9, "continuation_count": 9,
    "started_at": "2020-01-01T00:00:00Z", "generation": 99, "lease_owner": 5,
    "lease_expires_at": "2030-01-01T00:00:00Z", "next_step_at": "2020-01-01T00:00:00Z",
    "cancel_requested_at": "2020-01-01T00:00:00Z", "cancel_code": "another", "attempts": 9, "failures": 9,
    "failure_code": "another", "start_failures": 9, "recovered_generation": 9,
    "work_job": uuid.uuid4(), "sequence": 9, "provider_call_id": "another", "provider_item_id": "another",
    "provider_response_id": "another", "tool_name": "another", "tool_version": "another", "module_id": "another",
    "module_artifact_digest": DIGEST, "catalog_digest": DIGEST, "arguments": "another", "argument_digest": DIGEST,
    "report_offset": 9, "requested_at": "2020-01-01T00:00:00Z", "outcome_digest": DIGEST, "result": '{"a": 1}',
    "error": '{"a": 1}', "executor_id": "another", "executor_disclosure": '{"a": 1}',
    "target_receipt_refs": '["a"]', "attribution_refs": '["a"]',
}  # fmt: skip
ENDS = {"report": "an end", "completed_at": "2030-01-01T00:00:00Z"}


def sql(statement: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def put(row: Any, **columns: Any) -> None:
    assignments = ", ".join(f'"{column}" = %s' for column in columns)
    sql(f"update {row._meta.db_table} set {assignments} where id = %s", *columns.values(), row.pk)


def change(row: Any, field: str) -> None:
    put(row, **{row._meta.get_field(field).column: OTHER[field]})


def job_in(make_job: JobOf, status: str) -> Job:
    job = make_job()
    if status == "queued":
        return job
    job = claim_for_run(job.pk)
    return job if status == "running" else finish_job(job.pk, status, final_text="a report")


# --- jobs


@pytest.mark.parametrize(
    "field", [name for name in IDENTITY if name not in ("conversation", "owner_visitor", "kind")]
)
def test_what_a_job_is_never_changes(make_job: JobOf, field: str) -> None:
    with pytest.raises(DatabaseError, match="work job identity is immutable"):
        change(make_job(), field)


@pytest.mark.parametrize("field", ["conversation", "owner_visitor"])
def test_a_job_of_another_owner_is_refused_as_such_first(make_job: JobOf, field: str) -> None:
    with pytest.raises(DatabaseError, match="work job conversation owner mismatch"):
        change(make_job(), field)


def test_a_job_cannot_become_a_delegation(make_job: JobOf) -> None:
    with pytest.raises(DatabaseError, match="work job machine owner mismatch"):
        change(make_job(), "kind")


def test_a_job_moves_to_another_conversation_of_its_owner_never(make_job: JobOf) -> None:
    job = make_job()
    sql("update conversations set deleted_at = now() where id = %s", job.conversation_id)
    sql(
        "insert into conversations (id, visitor_id, created_at) values (%s, %s, now())",
        "0" * 32,
        job.owner_visitor_id,
    )

    with pytest.raises(DatabaseError, match="work job identity is immutable"):
        put(job, conversation_id="0" * 32)


def test_a_job_is_inserted_only_for_the_owner_of_its_conversation(make_job: JobOf) -> None:
    other = ensure_conversation("another")

    with pytest.raises(DatabaseError, match="work job conversation owner mismatch"), transaction.atomic():
        Job.objects.create(
            conversation_id=make_job().conversation_id,
            owner_visitor_id=other.visitor_id,
            surface="text",
            goal="x",
        )


def test_a_visitor_without_an_account_delegates_to_no_machine(make_delegation: JobOf) -> None:
    admitted, visitor = make_delegation("theirs"), ensure_conversation("a browser")
    machine = Machine.objects.get(pk=admitted.machine_id)

    with pytest.raises(DatabaseError, match="work job machine owner mismatch"), transaction.atomic():
        Job.objects.create(**delegation_attributes(visitor, machine, "x"))


def test_a_delegation_without_a_machine_is_refused(make_delegation: JobOf) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x") | {"machine_id": None}

    with pytest.raises(DatabaseError, match="work job machine owner mismatch"), transaction.atomic():
        Job.objects.create(**values)


@pytest.mark.parametrize("false", [{"machine_tier": "shell"}, {"machine_name": "another"}, {"roots": ["/"]}])
def test_a_delegation_carries_the_authority_of_its_machine(
    make_delegation: JobOf, false: dict[str, Any]
) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x")
    values["authority_snapshot"] |= false

    with (
        pytest.raises(DatabaseError, match="work job machine authority snapshot mismatch"),
        transaction.atomic(),
    ):
        Job.objects.create(**values)


WRONG_DELEGATIONS = [
    ("delegation", {"prompt": ""}), ("delegation", {"prompt": "x" * 8_001}), ("delegation", {"prompt": 5}),
    ("delegation", {"machine_id": str(uuid.uuid4())}), ("delegation", {"agent_id": "another"}),
    ("delegation", {"cwd": "/elsewhere"}), ("delegation", {"machine_name": "another"}),
    ("delegation", {"timeout_ms": None}), ("delegation", {"timeout_ms": "3600000"}),
    ("authority_snapshot", {"agent_id": ""}), ("authority_snapshot", {"agent_id": "x" * 65}),
    ("authority_snapshot", {"cwd": "/" * 501}), ("authority_snapshot", {"cwd": None}),
    ("budget_snapshot", {"maximum_prompt_bytes": 3}), ("budget_snapshot", {"maximum_prompt_bytes": 8_001}),
    ("budget_snapshot", {"maximum_prompt_bytes": "8000"}), ("budget_snapshot", {"maximum_report_bytes": 7_999}),
    ("budget_snapshot", {"maximum_report_bytes": None}), ("budget_snapshot", {"wall_clock_ms": 0}),
    ("budget_snapshot", {"wall_clock_ms": 3_600_001}), ("budget_snapshot", {"wall_clock_ms": "soon"}),
    ("budget_snapshot", {"wall_clock_ms": 1.5}),
]  # fmt: skip


@pytest.mark.parametrize(("field", "wrong"), WRONG_DELEGATIONS)
def test_the_shape_of_a_delegation_is_checked(
    make_delegation: JobOf, field: str, wrong: dict[str, Any]
) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x")
    values[field] |= wrong
    if field == "budget_snapshot" and "wall_clock_ms" in wrong:
        values["delegation"]["timeout_ms"] = wrong["wall_clock_ms"]
    if field == "authority_snapshot":
        values["delegation"] |= wrong

    with pytest.raises(IntegrityError, match="work_jobs_delegation_identity"), transaction.atomic():
        Job.objects.create(**values)


@pytest.mark.parametrize("field", ["delegation", "budget_snapshot"])
@pytest.mark.parametrize("wrong", [None, [], 5, "text"])
def test_the_snapshots_of_a_delegation_are_maps(make_delegation: JobOf, field: str, wrong: Any) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x") | {field: wrong}

    with pytest.raises(IntegrityError, match="work_jobs_delegation_identity"), transaction.atomic():
        Job.objects.create(**values)


@pytest.mark.parametrize("value", ["null", "5", '"text"', "[]"])
def test_a_delegation_cannot_lose_its_map(make_delegation: JobOf, value: str) -> None:
    with pytest.raises(DatabaseError, match="work job identity is immutable"):
        put(make_delegation("theirs"), delegation=value)


@pytest.mark.parametrize("before", JobStatus.values)
@pytest.mark.parametrize("after", JobStatus.values)
def test_only_the_lawful_moves_of_a_job_are_possible(make_job: JobOf, before: str, after: str) -> None:
    job = job_in(make_job, before)
    ends = ENDS if after in Job.TERMINAL_STATUSES and before not in Job.TERMINAL_STATUSES else {}
    moves = {str(old): [str(new) for new in news] for old, news in MOVES.items()}

    if before == after or after in moves.get(before, []):
        put(job, status=after, **ends)
        return
    message = f"invalid {before} work job transition" if before in moves else "terminal work job is immutable"
    with pytest.raises(DatabaseError, match=message):
        put(job, status=after, **ends)


@pytest.mark.parametrize("field", [name for name in FROZEN if name != "delegation"])
def test_an_ended_job_is_frozen(make_job: JobOf, field: str) -> None:
    with pytest.raises(DatabaseError, match="terminal work job is immutable"):
        change(job_in(make_job, "failed"), field)


def test_an_ended_delegation_takes_no_session(make_delegation: JobOf) -> None:
    job = finish_job(make_delegation("theirs").pk, "cancelled")

    with pytest.raises(DatabaseError, match="terminal work job is immutable"):
        put(job, delegation=json.dumps(job.delegation | {"resume_session_id": "late"}))


def test_the_message_of_a_report_may_be_deleted(make_job: JobOf) -> None:
    job = job_in(make_job, "completed")

    job.report_message.delete()

    job.refresh_from_db()
    assert (job.report_message_id, job.report) == (None, "a report")


@pytest.mark.parametrize(
    "values", [{"completed_at": None}, {"report": None}, {"report": ""}, {"report": " \n\t "}]
)
def test_an_end_needs_a_time_and_a_report(make_job: JobOf, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match="work_jobs_terminal_report_check"):
        put(job_in(make_job, "running"), status="failed", **ENDS | values)


def test_a_job_that_goes_on_has_no_time_of_end(make_job: JobOf) -> None:
    with pytest.raises(IntegrityError, match="work_jobs_terminal_report_check"):
        put(make_job(), completed_at=timezone.now())


def test_a_generation_never_decreases(make_job: JobOf) -> None:
    job = claim_for_run(claim_for_run(make_job().pk).pk)

    with pytest.raises(DatabaseError, match="work job generation never decreases"):
        put(job, generation=1)


@pytest.mark.parametrize("field", ["started_at", "cancel_requested_at"])
def test_what_happens_once_keeps_its_first_time(make_job: JobOf, field: str) -> None:
    job = make_job()
    change(job, field)

    with pytest.raises(DatabaseError, match="keeps its first time"):
        put(job, **{field: timezone.now()})


def test_no_job_and_no_step_is_ever_deleted(request_step: Callable[..., JobStep]) -> None:
    step = request_step()

    for table, pk in (("work_job_steps", step.pk), ("work_jobs", step.work_job_id)):
        with pytest.raises(DatabaseError, match="Cannot delete"):
            sql(f"delete from {table} where id = %s", pk)


@pytest.mark.parametrize(
    "values",
    [
        {"status": "resting"},
        {"kind": "coding"},
        {"surface": "smell"},
        {"goal": ""},
        {"goal": "é" * 1_001},
        {"context_hint": "é" * 1_001},
        {"requesting_tool_step_ref": "é" * 129},
        {"report": "é" * 4_001},
        {"error_code": "é" * 65},
        {"usage": []},
        {"usage": {"a": "x" * 16_400}},
        {"instruction_digest": "A" * 64},
        {"tool_catalog_digest": "abc"},
        {"authority_snapshot": {"a": "x" * 32_800}},
        {"budget_snapshot": {"a": "x" * 4_100}},
        {"delegation": {"a": "x" * 32_800}},
        {"generation": -1},
        {"token_budget": -1},
    ],
)
def test_values_of_a_job_out_of_bounds_are_refused(make_job: JobOf, values: dict[str, Any]) -> None:
    job = make_job()
    row = {
        "conversation": job.conversation,
        "owner_visitor": job.owner_visitor,
        "surface": "text",
        "goal": "x",
    }

    with pytest.raises(IntegrityError, match="_check"), transaction.atomic():
        Job.objects.create(**row | values)


def test_a_row_of_the_bare_facts_is_queued_and_due(make_job: JobOf) -> None:
    job = make_job()

    sql(
        "insert into work_jobs (id, conversation_id, owner_visitor_id, surface, goal, kind, status, usage, generation,"
        " tool_call_count, continuation_count, keep_boxes, attempts, failures, start_failures)"
        " values (gen_random_uuid(), %s, %s, 'text', 'bare', 'deep_work', 'queued', '{}', 0, 0, 0, false, 0, 0, 0)",
        job.conversation_id,
        job.owner_visitor_id,
    )

    bare = Job.objects.get(goal="bare")
    assert bare.next_step_at is not None
    assert bare.created_at is not None


def test_every_change_of_a_jobs_status_leaves_a_history_row(make_job: JobOf) -> None:
    job = job_in(make_job, "failed")

    assert list(job.history.order_by("pgh_id").values_list("status", flat=True)) == [
        "queued",
        "running",
        "failed",
    ]


# --- steps


@pytest.mark.parametrize("field", STEP_IDENTITY)
def test_what_a_step_is_never_changes(request_step: Callable[..., JobStep], field: str) -> None:
    with pytest.raises(DatabaseError, match="work job step identity is immutable"):
        change(request_step(), field)


@pytest.mark.parametrize("field", STEP_FROZEN)
def test_an_ended_step_is_frozen(running: Job, request_step: Callable[..., JobStep], field: str) -> None:
    step = request_step()
    complete_job_step(running.pk, running.generation, step.pk, outcome_of(step))

    with pytest.raises(DatabaseError, match="terminal work job step is immutable"):
        change(step, field)


def in_shape(status: str) -> dict[str, Any]:
    """The columns that a step of this status has."""
    if status == "requested":
        return {"started_at": None}
    if status == "running":
        return {"started_at": timezone.now()}
    ended = {"completed_at": timezone.now(), "outcome_digest": DIGEST, "executor_id": "host"}
    return ended | ({"result": "{}"} if status == "succeeded" else {"error": "{}"})


@pytest.mark.parametrize("before", StepStatus.values)
@pytest.mark.parametrize("after", StepStatus.values)
def test_only_the_lawful_moves_of_a_step_are_possible(
    request_step: Callable[..., JobStep], before: str, after: str
) -> None:
    step = request_step()
    if before != "requested":
        put(step, status=before, **in_shape(before))
    moves = {str(old): [str(new) for new in news] for old, news in STEP_MOVES.items()}

    if before == after:
        put(step, status=after)
    elif after in moves.get(before, []):
        put(step, status=after, **in_shape(after))
    else:
        kind = (
            f"invalid {before} work job step transition"
            if before in moves
            else "terminal work job step is immutable"
        )
        with pytest.raises(DatabaseError, match=kind):
            put(step, status=after, **in_shape(after))


@pytest.mark.parametrize(
    "values",
    [
        {"started_at": "2030-01-01T00:00:00Z"},
        {"completed_at": "2030-01-01T00:00:00Z"},
        {"status": "running"},
        {"status": "running", "started_at": "2030-01-01T00:00:00Z", "outcome_digest": DIGEST},
        {"status": "running", "started_at": "2030-01-01T00:00:00Z", "result": "{}"},
        *[
            {"status": "succeeded", "completed_at": "2030-01-01T00:00:00Z", "outcome_digest": DIGEST,
             "result": "{}", "executor_id": "host"} | wrong
            for wrong in ({"completed_at": None}, {"outcome_digest": None}, {"result": None}, {"error": "{}"},
                          {"executor_id": None}, {"executor_id": ""})
        ],
        *[
            {"status": "refused", "completed_at": "2030-01-01T00:00:00Z", "outcome_digest": DIGEST,
             "error": "{}", "executor_id": "host"} | wrong
            for wrong in ({"completed_at": None}, {"outcome_digest": None}, {"error": None}, {"result": "{}"},
                          {"executor_id": None})
        ],
    ],
)  # fmt: skip
def test_a_step_has_the_shape_of_its_status(
    request_step: Callable[..., JobStep], values: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match="work_job_steps_shape_check"):
        put(request_step(), **values)


@pytest.mark.parametrize(
    "values",
    [
        {"sequence": 0},
        {"sequence": 65},
        {"sequence": 1},
        {"provider_call_id": "call-1"},
        {"provider_call_id": ""},
        {"tool_name": ""},
        {"argument_digest": "abc"},
        {"catalog_digest": "abc"},
        {"arguments": "x" * 262_145},
        {"target_receipt_refs": {}},
    ],
)
def test_values_of_a_step_out_of_bounds_are_refused(
    request_step: Callable[..., JobStep], values: dict[str, Any]
) -> None:
    first = request_step("call-1")
    row = {"work_job": first.work_job, "sequence": 2, "provider_call_id": "call-2", "tool_name": "x"}

    with pytest.raises(IntegrityError), transaction.atomic():
        JobStep.objects.create(**row | {"argument_digest": DIGEST} | values)


# --- machines and pairings


def test_a_machine_stays_its_owners_and_a_revoked_one_revoked() -> None:
    machine = machine_for(new_user("owner-of-machine"), "guarded")

    for column, value in (("user_id", new_user("thief").pk), ("token_digest", b"x" * 32)):
        with pytest.raises(DatabaseError, match="machine identity is immutable"):
            put(machine, **{column: value})
    put(machine, status="revoked", revoked_at=timezone.now())
    with pytest.raises(DatabaseError, match="invalid revoked machine transition"):
        put(machine, status="active", revoked_at=None)
    with pytest.raises(DatabaseError, match="Cannot delete"):
        sql("delete from machines where id = %s", machine.pk)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "  "),
        ("tier", "root"),
        ("roots", "{}"),
        ("roots", "[5]"),
        ("roots", json.dumps(["/"] * 17)),
        ("token_expires_at", "2020-01-01T00:00:00Z"),
        ("last_probe", json.dumps({"a": "x" * 32_800})),
        ("status", "revoked"),
        ("revoked_at", "2030-01-01T00:00:00Z"),
    ],
)
def test_values_of_a_machine_out_of_bounds_are_refused(column: str, value: str) -> None:
    machine = machine_for(new_user("owner-of-machine"), "bounded")

    with pytest.raises(IntegrityError, match="machines_"):
        put(machine, **{column: value})


def test_a_claimed_pairing_is_settled() -> None:
    machine = machine_for(new_user("owner-of-machine"), "settled")
    put(machine.pairing, status="claimed", sealed_token=None)

    with pytest.raises(DatabaseError, match="invalid claimed machine pairing transition"):
        put(machine.pairing, status="approved", sealed_token=b"again")
    with pytest.raises(DatabaseError, match="terminal machine pairing is immutable"):
        put(machine.pairing, sealed_token=b"again")
    with pytest.raises(DatabaseError, match="machine pairing identity is immutable"):
        put(machine.pairing, poll_secret_digest=b"x" * 32)
