"""What the database itself refuses of a job, whoever writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from conversations.services import ensure_conversation
from tests.work.conftest import JobOf
from tests.work.guarded import change, put, sql
from work.models import Job, JobStep
from work.models.job import FROZEN, IDENTITY
from work.services import claim_for_run, finish_job
from work.states import MOVES, JobStatus

pytestmark = pytest.mark.django_db
ENDS = {"report": "an end", "completed_at": "2030-01-01T00:00:00Z"}


def job_in(make_job: JobOf, status: str) -> Job:
    job = make_job()
    if status == "queued":
        return job
    job = claim_for_run(job.pk)
    return job if status == "running" else finish_job(job.pk, status, final_text="a report")


@pytest.mark.parametrize(
    "field", ["id", *(name for name in IDENTITY if name not in ("conversation", "owner_visitor", "kind"))]
)
def test_what_a_job_is_never_changes(make_job: JobOf, field: str) -> None:
    with pytest.raises(DatabaseError, match="work job identity is immutable"):
        change(make_job(), field)


@pytest.mark.parametrize("field", ["conversation", "owner_visitor"])
def test_a_job_of_another_owner_is_refused_as_such_first(make_job: JobOf, field: str) -> None:
    with pytest.raises(DatabaseError, match="work job conversation owner mismatch"):
        change(make_job(), field)


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
