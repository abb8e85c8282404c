"""The end of a job: steps closed, report composed, message written, row frozen, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction

from base import hooks
from base.clock import database_now
from base.faults import declare, fault_point
from base.text import storable
from conversations.models import Message
from work import digests, incidents, limits, progress, reports, watching
from work.errors import InvalidTransition, JobFenced
from work.models import Job, JobStep
from work.services.locking import locked
from work.states import ACTIVE_STEPS, MOVES, TERMINAL, IncidentSurface, JobKind, JobStatus, StepStatus

log = structlog.get_logger(__name__)

FINISHING = declare("jobs.finishing", "the end of a job is written, and not yet committed")
FINISHED = declare("jobs.finished", "the end of a job is committed")

UNNAMED_FAILURE = "work_job_failure"
ENDED = "work_job_ended"
_STEP_ENDS = {
    JobStatus.INTERRUPTED: StepStatus.INTERRUPTED,
    JobStatus.CANCELLED: StepStatus.CANCELLED,
    JobStatus.BUDGET_EXHAUSTED: StepStatus.CANCELLED,
}
_COUNTS = ("tool_call_count", "continuation_count")


def finish_job(
    job_id: UUID,
    status: str,
    *,
    error_code: str | None = None,
    usage: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
    final_text: str | None = None,
    generation: int | None = None,
) -> Job:
    """End the job with a report; returns it. A job that has ended is returned unchanged: the first end stands.

    `final_text` is the last word of the model or the agent, and then the report is exactly that; without it the report says
    in its first line how the job ended. A worker names its `generation`. `usage` replaces what was added up,
    `counts` may hold `tool_call_count` and `continuation_count`. Raises JobNotFound, JobFenced, InvalidTransition (a
    queued job can only fail, be interrupted or be cancelled), and ValueError for a status that is no end.
    """
    if status not in TERMINAL:
        raise ValueError(f"{status!r} is not an end of a job")
    with transaction.atomic():
        job = locked(job_id)
        if job.is_terminal:
            return job
        if generation is not None and job.generation != generation:
            raise JobFenced
        if JobStatus(status) not in MOVES[JobStatus(job.status)]:
            raise InvalidTransition
        code = error_code_of(error_code)
        _end_steps(job, status, code or ENDED)
        _write(job, status, code, usage, counts, final_text)
        _report_incident(job)
        _tell(job)
        watching.wake_watchers(job_id)
        fault_point(FINISHING)
    transaction.on_commit(lambda: fault_point(FINISHED))
    log.info("job_finished", job=str(job_id), status=status, code=code)
    return job


def error_code_of(code: Any) -> str | None:
    """The code as it can be kept: what is too long or no text is `work_job_failure`."""
    if code is None:
        return None
    is_kept = isinstance(code, str) and code.strip() and storable(code) == code
    return (
        code if is_kept and len(code.encode(errors="replace")) <= limits.ERROR_CODE_BYTES else UNNAMED_FAILURE
    )


def _write(
    job: Job,
    status: str,
    code: str | None,
    usage: Mapping[str, Any] | None,
    counts: Mapping[str, int] | None,
    final_text: str | None,
) -> None:
    """The report, its message, and the row as it stays."""
    job.report = reports.compose(_ending(job, status, code, final_text))
    job.status, job.error_code = status, code
    job.completed_at = database_now()
    if usage is not None:
        job.usage = digests.storable_json(dict(usage))
    for name in _COUNTS:
        if counts and name in counts:
            setattr(job, name, counts[name])
    job.lease_owner = job.lease_expires_at = job.next_step_at = None
    job.report_message = _message(job)
    job.save(
        update_fields=["report", "status", "error_code", "completed_at", "usage", *_COUNTS, "lease_owner",
                       "lease_expires_at", "next_step_at", "report_message"]
    )  # fmt: skip


def _message(job: Job) -> Message | None:
    """The report in the conversation; none for a deleted owner, of whom no text is kept."""
    user = job.owner_visitor.user
    if job.conversation.deleted_at is not None or (user is not None and user.deleted_at is not None):
        return None
    return Message.objects.create(
        conversation_id=job.conversation_id,
        role=Message.Role.ASSISTANT,
        content=job.report or "",
        status=Message.Status.COMPLETE,
        work_job_id=job.pk,
    )


def _ending(job: Job, status: str, code: str | None, final_text: str | None) -> reports.Ending:
    delegation = job.delegation or {}
    text = job.report or ""
    if job.kind == JobKind.DELEGATION:
        text = progress.settled(job.pk, text)
    steps = JobStep.objects.filter(work_job=job).order_by("sequence").values_list("tool_name", "status")
    return reports.Ending(
        kind=job.kind,
        status=status,
        goal=job.goal,
        error_code=code,
        text=text,
        final_text=final_text,
        agent=str(delegation.get("agent_id", "")),
        machine=str(delegation.get("machine_name", "")),
        steps=list(steps),
    )


def _end_steps(job: Job, status: str, code: str) -> None:
    """Close what is still open: nobody will."""
    end = _STEP_ENDS.get(JobStatus(status), StepStatus.FAILED)
    for step in JobStep.objects.filter(work_job=job, status__in=list(ACTIVE_STEPS)):
        close_step(step, end, code)


def close_step(step: JobStep, status: StepStatus, code: str) -> None:
    """End an open step without an answer of its tool. The job's row must be locked by the caller."""
    error = {"code": code}
    outcome = {
        "call_id": step.provider_call_id,
        "tool_name": step.tool_name,
        "status": status.value,
        "error": error,
    }
    step.status, step.error, step.completed_at = status, error, database_now()
    step.executor_id = step.executor_id or "host"
    step.outcome_digest = digests.digest(outcome)
    step.sealed_arguments = None
    step.save(
        update_fields=["status", "error", "completed_at", "executor_id", "outcome_digest", "sealed_arguments"]
    )


def _tell(job: Job) -> None:
    """Tell who has a part in the job. What goes wrong there is theirs: it is undone and logged, and the job ends all the same."""
    try:
        with transaction.atomic():
            hooks.job_finished(job)
    except DatabaseError:
        log.exception("job_finished_hook_failed", job=str(job.pk))


def _report_incident(job: Job) -> None:
    """A failed job is an incident; of a delegation every end is that is not the one hoped for."""
    code = _incident_code(job)
    if code is None:
        return
    incidents.record(
        surface=IncidentSurface.DELEGATION if job.kind == JobKind.DELEGATION else IncidentSurface.JOB,
        origin="job_server",
        code=code,
        correlation_ref=job.pk,
        conversation=job.conversation_id,
        owner_visitor=job.owner_visitor_id,
        summary=f"A job ended as {job.status}",
        context={"kind": job.kind, "goal": job.goal, "error_code": job.error_code, "failures": job.failures},
    )


def _incident_code(job: Job) -> str | None:
    if job.status == JobStatus.INTERRUPTED:
        return None  # whoever found it interrupted has recorded that
    if job.kind == JobKind.DELEGATION:
        return incidents.delegation_code(job.status, job.error_code)
    return (job.error_code or UNNAMED_FAILURE) if job.status == JobStatus.FAILED else None
