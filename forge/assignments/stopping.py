"""Stopping what an ended attempt started: its run or its job."""

from __future__ import annotations

from forge.assignments.starting import job_of, run_of
from forge.models import Assignment
from forge.states import TargetKind
from runs import services as runs
from work import services as jobs


def stop_target(assignment: Assignment) -> None:
    """Ask for the end of the attempt's run or job, durably; then nothing is due of the attempt any more.

    Without effect on an attempt that lives.
    """
    if not assignment.is_terminal:
        return
    if assignment.target_kind == TargetKind.BOX:
        if (run := run_of(assignment)) is not None:
            runs.cancel(run)
    elif (job := job_of(assignment)) is not None:
        jobs.cancel_job(job.pk, assignment.failure_reason or "cancelled")
    Assignment.objects.filter(pk=assignment.pk, state__in=Assignment.TERMINAL_STATES).update(
        next_step_at=None, lease_owner=None, lease_expires_at=None
    )
