"""Asking for the end of an attempt, from whichever end."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import structlog

from accounts.models import User
from conversations.models import Conversation
from forge.assignments.finishing import finish
from forge.assignments.stopping import stop_target
from forge.errors import AssignmentNotFound, AssignmentNotLive, RepositoryNotWritable
from forge.models import Assignment
from forge.selectors import may_write
from forge.states import LIVE, AssignmentState

log = structlog.get_logger(__name__)

BY_REQUEST = "cancelled_by_request"
BY_VIEWER = "cancelled_by_viewer"


def cancel(assignment: Assignment, reason: str = BY_REQUEST) -> Assignment:
    """End the attempt as cancelled and ask for the end of its run or job; returns it. One that has ended is unchanged.

    The credential is dead when this returns. If the process dies in between, a worker stops the run or job.
    """
    finished = finish(assignment, AssignmentState.CANCELLED, reason=reason)
    if finished.next_step_at is not None:
        stop_target(finished)
    return Assignment.objects.get(pk=assignment.pk)


def cancel_by_viewer(user: User, assignment_id: UUID) -> Assignment:
    """Cancel an attempt from its issue's page: whoever may write to the repository may. Raises AssignmentNotFound,
    RepositoryNotWritable and AssignmentNotLive."""
    assignment = Assignment.objects.select_related("repository").filter(pk=assignment_id).first()
    if assignment is None:
        raise AssignmentNotFound
    if not may_write(user, assignment.repository):
        raise RepositoryNotWritable
    if assignment.is_terminal:
        raise AssignmentNotLive
    return cancel(assignment, BY_VIEWER)


def end_all(state: AssignmentState, reason: str, **which: Any) -> int:
    """End every living attempt that these filters find; returns how many. One that cannot be ended costs only itself."""
    count = 0
    for assignment in Assignment.objects.filter(state__in=LIVE, **which):
        try:
            finished = finish(assignment, state, reason=reason)
            if finished.next_step_at is not None:
                stop_target(finished)
            count += 1
        except Exception:
            log.exception("assignment_not_ended", assignment=str(assignment.pk), reason=reason)
    return count


def of_owner(owner: User | Conversation | Any) -> int:
    """End every attempt of a user or a conversation that is being deleted; returns how many."""
    if isinstance(owner, Conversation):
        return end_all(AssignmentState.CANCELLED, "owner_deleted", conversation=owner)
    if isinstance(owner, User):
        return end_all(AssignmentState.CANCELLED, "owner_deleted", conversation__visitor__user=owner)
    return 0


def of_revoked_machine(machine: Any) -> int:
    """End the attempts on a computer that was revoked; returns how many."""
    return end_all(AssignmentState.FAILED, "machine_revoked", machine=machine)


def of_machine_without_credentials(machine: Any) -> int:
    """End the attempts on a computer that may get no Git credentials any more; returns how many."""
    return end_all(AssignmentState.FAILED, "scoped_forge_credentials_disabled", machine=machine)
