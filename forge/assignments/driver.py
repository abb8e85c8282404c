"""The worker's driver of attempts: starts what its maker did not, ends what is overdue, stops what an end left running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import connection

from base import leases
from base.clock import database_now
from base.errors import CodedError
from base.pump import Holder, Outcome
from forge.assignments import starting, watching
from forge.assignments.expiring import expire_one
from forge.assignments.stopping import stop_target
from forge.models import Assignment
from forge.states import AssignmentState

log = structlog.get_logger(__name__)

SLOTS = 4
LONGEST_PAUSE_SECONDS = 60

_CLAIM = f"""
    with due as (
        select a.id from forge_assignments a where a.next_step_at <= clock_timestamp() and {leases.free("a")}
        order by a.next_step_at limit %(limit)s for update skip locked)
    update forge_assignments a set {leases.take("a").replace("%s", "%(owner)s", 1).replace("%s", "%(lease)s", 1)},
        next_step_at = clock_timestamp() + make_interval(secs => %(lease)s)
    from due where a.id = due.id returning a.id, a.generation
"""  # noqa: S608 - constants of ours
_PUT_OFF = f"""
    update forge_assignments set {leases.RELEASE}, step_failures = step_failures + 1,
        next_step_at = clock_timestamp() + make_interval(secs => least(power(2, least(step_failures, 10)), %(most)s))
    where id = %(id)s and generation = %(generation)s and next_step_at is not null
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed attempt; what it needs is read when it is carried out."""

    id: UUID
    generation: int


class AssignmentDriver:
    """See `base.pump.Driver`. A step is database work and, to start one, a look at its box; `perform` therefore has a
    connection of its own, opened and closed by it."""

    name = watching.DRIVER
    slots = SLOTS

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        """At most `limit` due attempts, leased to `holder`."""
        with connection.cursor() as cursor:
            cursor.execute(
                _CLAIM, {"limit": limit, "owner": holder.owner, "lease": max(60, holder.lease_seconds)}
            )
            return [Task(*row) for row in cursor.fetchall()]

    def perform(self, task: Task) -> None:
        """The one step that the attempt needs now. What cannot be started has failed; only what broke is raised."""
        try:
            carry_on(Assignment.objects.get(pk=task.id))
        finally:
            connection.close()

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """A step that broke is taken again, with growing pauses; every other one has written what follows."""
        for outcome in outcomes:
            if outcome.error is None:
                continue
            log.error("assignment_step_broke", assignment=str(outcome.task.id), exc_info=outcome.error)
            with connection.cursor() as cursor:
                cursor.execute(
                    _PUT_OFF,
                    {
                        "id": outcome.task.id,
                        "generation": outcome.task.generation,
                        "most": LONGEST_PAUSE_SECONDS,
                    },
                )

    def seconds_until_due(self) -> float | None:
        """Until the next attempt is due; None if none is."""
        with connection.cursor() as cursor:
            cursor.execute(
                "select extract(epoch from min(next_step_at) - clock_timestamp()) from forge_assignments"
            )
            row = cursor.fetchone()
        return max(0.0, float(row[0])) if row and row[0] is not None else None


def carry_on(assignment: Assignment) -> None:
    """Do what this attempt needs now: stop, expire, start, or wait for its deadline."""
    if assignment.is_terminal:
        stop_target(assignment)
    elif assignment.deadline_at <= database_now():
        expire_one(assignment)
    elif assignment.state == AssignmentState.ADMITTED:
        _start(assignment)
    else:
        starting.start_running(assignment)  # keeps it at work and due at its deadline


def _start(assignment: Assignment) -> None:
    try:
        starting.start(assignment)
    except CodedError as refusal:
        log.info("assignment_not_started", assignment=str(assignment.pk), code=refusal.code)
