"""What can be seen of a delegation beside its job."""

from __future__ import annotations

from typing import Any

from work.models import Delegation, Job


def describe(job: Job) -> dict[str, Any] | None:
    """What is known of the job's work on its machine, for its owner; None before it was offered, and for any other job. One
    query, none if `on_machine` was selected with the job."""
    if not job.is_delegation:
        return None
    delegation: Delegation | None = getattr(job, "on_machine", None)
    if delegation is None:
        return None
    return {
        "machine": str(delegation.machine_id),
        "attempt": delegation.attempt,
        "offered_at": delegation.offered_at,
        "accepted_at": delegation.accepted_at,
        "waits_for_machine_until": delegation.absent_until,
        "session_id": delegation.session_id,
        "model": delegation.model,
        "reasoning": delegation.reasoning,
        "mode": delegation.mode,
        "tool_calls": delegation.tool_calls,
        "refused_permissions": delegation.refused_permissions,
        "permissions": delegation.permissions,
    }
