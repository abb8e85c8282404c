"""What the end of a run or a job means for the attempt that it was started for. Called in the transaction that ended it."""

from __future__ import annotations

from uuid import UUID

from forge.assignments.finishing import finish
from forge.models import Assignment
from forge.selectors import as_id, attempt_named
from forge.states import AssignmentState
from runs.models import Run
from runs.states import RunState
from work.models import Job
from work.states import JobKind, JobStatus

STEP_REF = "assignment:"
MACHINE_REVOKED = "machine_revoked"
"""A job that ended for this was cancelled; the attempt has failed: nobody wanted its end."""


def assignment_of_run(run: Run) -> Assignment | None:
    """The attempt that a run was started for, by what the run says, since the attempt may not say so yet."""
    return _attempt(attempt_named(run.requesting_principal))


def assignment_of_job(job: Job) -> Assignment | None:
    """The attempt that a delegation was made for."""
    reference = job.requesting_tool_step_ref or ""
    if job.kind != JobKind.DELEGATION or not reference.startswith(STEP_REF):
        return None
    return _attempt(as_id(reference.removeprefix(STEP_REF)))


def run_finished(run: Run) -> None:
    """The attempt ends as its run did."""
    assignment = assignment_of_run(run)
    if assignment is None:
        return
    match run.state:
        case RunState.COMPLETED:
            finish(assignment, AssignmentState.COMPLETED)
        case RunState.CANCELLED:
            finish(assignment, AssignmentState.CANCELLED, reason="run_cancelled")
        case _:
            finish(assignment, AssignmentState.FAILED, reason=run.failure_reason or "run_failed")


def job_finished(job: Job) -> None:
    """The attempt ends as its job did."""
    assignment = assignment_of_job(job)
    if assignment is None:
        return
    match job.status:
        case JobStatus.COMPLETED:
            finish(assignment, AssignmentState.COMPLETED)
        case JobStatus.CANCELLED if job.error_code != MACHINE_REVOKED:
            finish(assignment, AssignmentState.CANCELLED, reason=job.error_code or "job_cancelled")
        case _:
            finish(assignment, AssignmentState.FAILED, reason=job.error_code or f"job_{job.status}")


def _attempt(pk: UUID | None) -> Assignment | None:
    return None if pk is None else Assignment.objects.filter(pk=pk).first()
