"""Ending attempts whose deadline has passed. The worker does it at the deadline; this is for whatever it missed."""

from __future__ import annotations

import structlog

from base.clock import database_now
from forge.assignments import ends
from forge.assignments.finishing import finish
from forge.assignments.stopping import stop_target
from forge.models import Assignment
from forge.states import LIVE, AssignmentState
from runs.models import Run
from work.models import Job

log = structlog.get_logger(__name__)

EXPIRED = "assignment_expired"


def expire() -> int:
    """End every living attempt past its deadline as failed, and stop what it started; returns how many.

    One that cannot be ended costs only itself.
    """
    overdue = Assignment.objects.filter(state__in=LIVE, deadline_at__lte=database_now())
    return sum(_expired(assignment) for assignment in overdue.order_by("deadline_at"))


def expire_one(assignment: Assignment) -> Assignment:
    """End this attempt, whose deadline has passed, and stop what it started."""
    finished = finish(assignment, AssignmentState.FAILED, reason=EXPIRED)
    if finished.next_step_at is not None:
        stop_target(finished)
    return finished


def catch_up() -> int:
    """End every living attempt whose run or job has ended without its being told, as where that broke; returns how many."""
    live = Assignment.objects.filter(state__in=LIVE)
    ended = [
        *(
            (ends.run_finished, a.run)
            for a in live.filter(run__state__in=Run.TERMINAL_STATES).select_related("run")
        ),
        *(
            (ends.job_finished, a.work_job)
            for a in live.filter(work_job__status__in=Job.TERMINAL_STATUSES).select_related("work_job")
        ),
    ]
    for tell, target in ended:
        try:
            tell(target)  # type: ignore[operator]  # each with its own
        except Exception:
            log.exception("assignment_not_caught_up", target=str(target))
    return len(ended)


def _expired(assignment: Assignment) -> bool:
    try:
        return expire_one(assignment).failure_reason == EXPIRED
    except Exception:
        log.exception("assignment_not_expired", assignment=str(assignment.pk))
        return False
