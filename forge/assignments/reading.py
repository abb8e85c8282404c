"""Readings of attempts, each with a known number of queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from forge.models import Assignment, AssignmentCredential, Issue
from forge.states import RequesterKind


@dataclass(frozen=True, slots=True)
class Attempt:
    """What everybody who sees an issue may know of an attempt at it; never whose conversation, box or computer it is."""

    id: UUID
    target_kind: str
    state: str
    branch: str
    terminal_branch: str | None
    terminal_commit: str | None
    failure_reason: str | None
    admitted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    requester_kind: str


def attempts_for_issue(issue: Issue) -> list[Attempt]:
    """The attempts at an issue, oldest first; failed and cancelled ones too. One query."""
    return attempts_for_issues([issue])[issue.pk]


def attempts_for_issues(issues: Iterable[Issue]) -> dict[int, list[Attempt]]:
    """The same for several issues by id; each is there, also without attempts. One query."""
    found: dict[int, list[Attempt]] = {issue.pk: [] for issue in issues}
    rows = Assignment.objects.filter(issue__in=list(found)).order_by("admitted_at", "id")
    for row in rows.values("issue_id", "requesting_principal", *_FIELDS):
        issue_id, principal = row.pop("issue_id"), row.pop("requesting_principal")
        found[issue_id].append(Attempt(**row, requester_kind=_kind(principal)))
    return found


def credential(assignment: Assignment) -> AssignmentCredential:
    """What is known of the attempt's credential, as it is now. One query."""
    return AssignmentCredential.objects.get(assignment_id=assignment.pk)


def _kind(principal: Any) -> str:
    """Only users ask; a row that says something else is told as what it is allowed to be."""
    said = principal.get("type") if isinstance(principal, dict) else None
    return str(said) if said in RequesterKind.values else RequesterKind.USER


_FIELDS = [name for name in Attempt.__slots__ if name != "requester_kind"]
