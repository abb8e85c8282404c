"""The steps of a job: each tool call is committed before it is carried out, and what came of it before it is used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import transaction

from base.faults import declare, fault_point
from base.text import storable
from work import arguments as call_arguments
from work import digests, limits, watching
from work.errors import (
    InvalidToolArguments,
    InvalidToolOutcome,
    StepLimitReached,
    StepNotFound,
    StepOutcomeConflict,
    StepTerminal,
)
from work.models import Job, JobStep
from work.services import outcomes
from work.services.finishing import close_step
from work.services.locking import locked_for_steps
from work.states import StepStatus

REQUESTED = declare("jobs.step_requested", "a tool call is committed; it has not started")
STARTED = declare("jobs.step_started", "a tool call is committed as running; nothing is carried out")
COMPLETED = declare(
    "jobs.step_completed", "the outcome of a tool call is committed; the model does not know it"
)

_LONGEST_ID = 256


def request_job_step(
    job_id: UUID,
    generation: int,
    *,
    provider_call_id: str,
    tool_name: str,
    arguments: str = "",
    provider_item_id: str | None = None,
    provider_response_id: str | None = None,
    tool_version: str | None = None,
    module_id: str | None = None,
    module_artifact_digest: str | None = None,
    catalog_digest: str | None = None,
    counted: bool = True,
) -> JobStep:
    """Write a tool call down before anything of it is done. The same call id answers the step that is there.

    `arguments` is the text that the model wrote; the row shows it without secrets (see `work.arguments`). Unless `counted` is false (a call that is refused for a limit), it counts
    as one of the job's tool calls. Raises JobNotFound, JobNotAcceptingSteps, JobFenced, InvalidToolArguments and
    StepLimitReached.
    """
    _check_call(provider_call_id, tool_name, arguments)
    with transaction.atomic():
        job = locked_for_steps(job_id, generation)
        known = list(JobStep.objects.filter(work_job=job_id).values_list("provider_call_id", flat=True))
        if provider_call_id in known:
            return JobStep.objects.get(work_job=job_id, provider_call_id=provider_call_id)
        sequence = len(known) + 1
        if sequence > limits.STEPS_PER_JOB:
            raise StepLimitReached
        kept = call_arguments.kept(storable(arguments))
        step = JobStep.objects.create(
            work_job=job,
            sequence=sequence,
            provider_call_id=provider_call_id,
            provider_item_id=_cut(provider_item_id, _LONGEST_ID),
            provider_response_id=_cut(provider_response_id, _LONGEST_ID),
            tool_name=outcomes.tool_name_of(tool_name),
            tool_version=_cut(tool_version, 64),
            module_id=_cut(module_id, 128),
            module_artifact_digest=module_artifact_digest,
            catalog_digest=catalog_digest,
            **kept,
            argument_digest=_argument_digest(arguments, kept),
            report_offset=len((job.report or "").encode()),
            requested_at=job.now,
        )
        _note_progress(job, tool_call_count=job.tool_call_count + (1 if counted else 0))
    transaction.on_commit(lambda: fault_point(REQUESTED))
    return step


def refuse_job_step(
    job_id: UUID,
    generation: int,
    *,
    executor_id: str,
    status: StepStatus,
    code: str,
    message: str,
    **call: Any,
) -> JobStep:
    """Write down a call that is not carried out, and how it ended, at once; returns the step.

    `call` is as for `request_job_step`; it is not counted as one of the job's calls. Raises as `request_job_step`.
    """
    with transaction.atomic():
        step = request_job_step(job_id, generation, counted=False, **call)
        outcome = {
            "call_id": step.provider_call_id,
            "tool_name": step.tool_name,
            "status": status.value,
            "error": {"code": code, "message": message},
            "executor": {"id": executor_id},
            "target_receipt_refs": [],
            "attribution_refs": [],
        }
        return complete_job_step(job_id, generation, step.pk, outcome)


def start_job_step(job_id: UUID, generation: int, step_id: UUID) -> Literal["started", "already_running"]:
    """Take the one start that the step has. Who is answered `already_running` must not carry it out.

    Raises JobNotFound, JobNotAcceptingSteps, JobFenced, StepNotFound and StepTerminal.
    """
    with transaction.atomic():
        job = locked_for_steps(job_id, generation)
        step = _step(job, step_id)
        if step.is_terminal:
            raise StepTerminal
        if step.status == StepStatus.RUNNING:
            return "already_running"
        step.status, step.started_at = StepStatus.RUNNING, job.now
        step.save(update_fields=["status", "started_at"])
        watching.wake_watchers(job_id)
    transaction.on_commit(lambda: fault_point(STARTED))
    return "started"


def complete_job_step(job_id: UUID, generation: int, step_id: UUID, outcome: Mapping[str, Any]) -> JobStep:
    """Write down what came of a tool call; returns the step. The same outcome again changes nothing.

    The outcome is a map: see `work.services.outcomes.parse`. Raises JobNotFound, JobNotAcceptingSteps, JobFenced,
    StepNotFound, InvalidToolOutcome, and StepOutcomeConflict where the step has ended with another outcome.
    """
    parsed = outcomes.parse(outcome)
    with transaction.atomic():
        job = locked_for_steps(job_id, generation)
        step = _step(job, step_id)
        if (parsed.call_id, parsed.tool_name) != (step.provider_call_id, step.tool_name):
            raise InvalidToolOutcome(detail="the outcome is that of another call")
        if step.is_terminal:
            if step.outcome_digest != parsed.digest:
                raise StepOutcomeConflict
            return step
        _complete(step, parsed, job.now)
        _note_progress(job)
    transaction.on_commit(lambda: fault_point(COMPLETED))
    return step


def interrupt_running_steps(
    job_id: UUID, generation: int, *, repeatable_tools: Collection[str] = ()
) -> list[JobStep]:
    """Close as interrupted what an earlier worker left running, since whether it took effect is not known; returns it.

    Calls of `repeatable_tools` are left running: they may simply be carried out again. Raises as `start_job_step`.
    """
    with transaction.atomic():
        job = locked_for_steps(job_id, generation)
        running = JobStep.objects.filter(work_job=job, status=StepStatus.RUNNING).order_by("sequence")
        steps = list(running.exclude(tool_name__in=list(repeatable_tools)))
        for step in steps:
            close_step(step, StepStatus.INTERRUPTED, "interrupted")
        if steps:
            watching.wake_watchers(job_id)
    return steps


def _check_call(call_id: str, tool_name: str, arguments: str) -> None:
    if not isinstance(arguments, str) or len(storable(arguments).encode()) > limits.ARGUMENT_BYTES:
        raise InvalidToolArguments
    if not isinstance(call_id, str) or storable(call_id) != call_id or not 1 <= len(call_id) <= _LONGEST_ID:
        raise InvalidToolArguments(detail=f"a call has an id of 1 to {_LONGEST_ID} characters")
    if not isinstance(tool_name, str) or not tool_name:
        raise InvalidToolArguments(detail="a call names its tool")


def _complete(step: JobStep, outcome: outcomes.Outcome, now: datetime) -> None:
    step.status, step.completed_at = outcome.status, now
    step.outcome_digest = outcome.digest
    step.result, step.error, step.usage = outcome.result, outcome.error, outcome.usage
    step.executor_id, step.executor_disclosure = outcome.executor_id, outcome.executor_disclosure
    step.target_receipt_refs, step.attribution_refs = outcome.target_receipt_refs, outcome.attribution_refs
    step.sealed_arguments = None
    step.save(
        update_fields=["status", "completed_at", "outcome_digest", "sealed_arguments", "result", "error", "usage", "executor_id",
                       "executor_disclosure", "target_receipt_refs", "attribution_refs"]
    )  # fmt: skip


def _note_progress(job: Job, **changes: Any) -> None:
    """The job got on: its claims without progress and its row of failures begin anew."""
    Job.objects.filter(pk=job.pk).update(attempts=0, failures=0, failure_code=None, **changes)
    watching.wake_watchers(job.pk)


def _step(job: Job, step_id: UUID) -> JobStep:
    step = JobStep.objects.filter(work_job=job, pk=step_id).first()
    if step is None:
        raise StepNotFound
    return step


def _argument_digest(written: str, kept: Mapping[str, Any]) -> str:
    """Of what the model wrote; where that holds a secret, of what the row shows: a short secret could be guessed by its digest."""
    return digests.argument_digest(kept["arguments"] if kept["sealed_arguments"] else written)


def _cut(text: str | None, characters: int) -> str | None:
    return None if text is None else storable(text)[:characters]
