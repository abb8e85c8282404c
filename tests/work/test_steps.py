"""Tool calls: committed before they are carried out, and never a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.work.conftest import JobOf, outcome_of
from work.errors import (
    InvalidToolArguments,
    InvalidToolOutcome,
    JobFenced,
    JobNotAcceptingSteps,
    StepLimitReached,
    StepNotFound,
    StepOutcomeConflict,
    StepTerminal,
)
from work.models import Job, JobStep
from work.services import (
    append_report_delta,
    claim_for_run,
    complete_job_step,
    finish_job,
    get_job,
    interrupt_running_steps,
    list_job_steps,
    request_job_step,
    start_job_step,
)

pytestmark = pytest.mark.django_db
RequestStep = Callable[..., JobStep]


def test_it_goes_from_request_to_outcome(running: Job, request_step: RequestStep) -> None:
    step = request_step("call-deep-work-1", arguments='{"query": "dw-alpha"}')
    assert start_job_step(running.pk, running.generation, step.pk) == "started"

    complete_job_step(
        running.pk, running.generation, step.pk, outcome_of(step, result={"matches": ["dw-alpha"]})
    )

    (done,) = list_job_steps(running)
    assert (done.sequence, done.status, done.result) == (1, "succeeded", {"matches": ["dw-alpha"]})
    assert done.requested_at <= done.started_at <= done.completed_at
    assert (done.executor_id, done.executor_disclosure) == ("host", {"where": "server"})
    assert get_job(running.pk).tool_call_count == 1


def test_the_same_call_is_one_step(running: Job, request_step: RequestStep) -> None:
    first, again = request_step("call-1", arguments="{}"), request_step("call-1", arguments='{"other": 1}')

    assert first.pk == again.pk
    assert again.arguments == "{}"
    assert get_job(running.pk).tool_call_count == 1


def test_of_two_starts_one_counts(running: Job, request_step: RequestStep) -> None:
    step = request_step()

    answers = [start_job_step(running.pk, running.generation, step.pk) for _ in range(2)]

    assert answers == ["started", "already_running"]


def test_an_ended_step_does_not_start(running: Job, request_step: RequestStep) -> None:
    step = request_step()
    complete_job_step(running.pk, running.generation, step.pk, outcome_of(step, "refused"))

    with pytest.raises(StepTerminal):
        start_job_step(running.pk, running.generation, step.pk)


def test_the_same_outcome_again_changes_nothing_and_another_is_a_conflict(
    running: Job, request_step: RequestStep
) -> None:
    step = request_step()
    done = complete_job_step(running.pk, running.generation, step.pk, outcome_of(step))

    again = complete_job_step(running.pk, running.generation, step.pk, outcome_of(step))
    assert again.completed_at == done.completed_at
    with pytest.raises(StepOutcomeConflict):
        complete_job_step(
            running.pk, running.generation, step.pk, outcome_of(step, result={"matches": ["x"]})
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"call_id": "another"},
        {"tool_name": "another"},
        {"status": "running"},
        {"status": "splendid"},
        {"executor": None},
        {"executor": {}},
        {"executor": "host"},
        {"target_receipt_refs": None},
        {"attribution_refs": {}},
        {"result": None},
        {"error": {"code": "x"}},
        {"status": "failed"},
        {"result": float("nan")},
        {"result": {"text": "x" * 262_144}},
        {"usage": [1]},
    ],
)
def test_an_outcome_that_does_not_fit_is_refused(
    running: Job, request_step: RequestStep, wrong: dict[str, Any]
) -> None:
    step = request_step()

    with pytest.raises(InvalidToolOutcome):
        complete_job_step(running.pk, running.generation, step.pk, outcome_of(step) | wrong)
    assert list_job_steps(running)[0].status == "requested"


def test_a_failure_needs_a_code(running: Job, request_step: RequestStep) -> None:
    step = request_step()

    with pytest.raises(InvalidToolOutcome):
        complete_job_step(running.pk, running.generation, step.pk, outcome_of(step, "failed", error={}))


def test_what_no_database_can_hold_is_made_visible(running: Job, request_step: RequestStep) -> None:
    step = request_step(arguments='{"a": "\0"}')

    done = complete_job_step(
        running.pk, running.generation, step.pk, outcome_of(step, result={"a\0": ["\0", "\ud800"]})
    )

    done.refresh_from_db()
    assert (done.arguments, done.result) == ('{"a": "␀"}', {"a␀": ["␀", "?"]})


def test_a_queued_or_ended_job_takes_no_steps(make_job: JobOf, running: Job) -> None:
    finish_job(running.pk, "failed")

    for job in (make_job(), running):
        with pytest.raises(JobNotAcceptingSteps):
            request_job_step(job.pk, job.generation, provider_call_id="call-1", tool_name="x")


def test_an_old_worker_writes_nothing(running: Job, request_step: RequestStep) -> None:
    step = request_step()
    claim_for_run(running.pk)

    with pytest.raises(JobFenced):
        request_step("call-2")
    with pytest.raises(JobFenced):
        start_job_step(running.pk, running.generation, step.pk)
    with pytest.raises(JobFenced):
        complete_job_step(running.pk, running.generation, step.pk, outcome_of(step))
    with pytest.raises(JobFenced):
        interrupt_running_steps(running.pk, running.generation)
    assert [(step.status, step.sequence) for step in list_job_steps(running)] == [("requested", 1)]


def test_there_are_at_most_64_steps(running: Job, request_step: RequestStep) -> None:
    for number in range(64):
        request_step(f"call-{number}")

    with pytest.raises(StepLimitReached):
        request_step("call-64")
    assert request_step("call-63").sequence == 64


@pytest.mark.parametrize(
    "wrong",
    [
        {"arguments": "x" * 262_145},
        {"arguments": None},
        {"call_id": ""},
        {"call_id": "x" * 257},
        {"call_id": "\0"},
        {"tool": ""},
    ],
)
def test_a_call_that_cannot_be_kept_is_refused(request_step: RequestStep, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidToolArguments):
        request_step(**wrong)


def test_another_jobs_step_is_not_found(running: Job, make_job: JobOf) -> None:
    other = claim_for_run(make_job().pk)
    step = request_job_step(other.pk, other.generation, provider_call_id="call-1", tool_name="x")

    with pytest.raises(StepNotFound):
        start_job_step(running.pk, running.generation, step.pk)


def test_a_call_beyond_a_limit_is_written_down_but_not_counted(
    running: Job, request_step: RequestStep
) -> None:
    request_step("call-33", counted=False)

    assert get_job(running.pk).tool_call_count == 0


def test_it_knows_how_much_text_came_before_it(running: Job, request_step: RequestStep) -> None:
    append_report_delta(running.pk, running.generation, "Ich prüfe. ")

    assert request_step().report_offset == len("Ich prüfe. ".encode())


def test_what_a_dead_worker_left_running_is_closed_unless_it_may_be_repeated(
    running: Job, request_step: RequestStep
) -> None:
    unsafe, safe, waiting = request_step("1", "box_run"), request_step("2"), request_step("3", "box_new")
    for step in (unsafe, safe):
        start_job_step(running.pk, running.generation, step.pk)
    adopted = claim_for_run(running.pk)

    closed = interrupt_running_steps(running.pk, adopted.generation, repeatable_tools={"recall_messages"})

    assert [step.pk for step in closed] == [unsafe.pk]
    assert [step.status for step in list_job_steps(running)] == ["interrupted", "running", "requested"]
    assert list_job_steps(running)[0].error == {"code": "interrupted"}
    assert waiting.status == "requested"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("interrupted", "interrupted"),
        ("cancelled", "cancelled"),
        ("budget_exhausted", "cancelled"),
        ("failed", "failed"),
        ("completed", "failed"),
    ],
)
def test_the_end_of_a_job_closes_its_open_steps(
    running: Job, request_step: RequestStep, status: str, expected: str
) -> None:
    started = request_step("1")
    request_step("2")
    start_job_step(running.pk, running.generation, started.pk)

    finish_job(running.pk, status, error_code="why" if status == "failed" else None)

    steps = list_job_steps(running)
    assert [step.status for step in steps] == [expected, expected]
    assert {step.error["code"] for step in steps} == {"why" if status == "failed" else "work_job_ended"}
