"""The end of an attempt: its state, what it left, and its dead credential, in one transaction."""

from __future__ import annotations

import re
from typing import Any

import structlog
from django.db import transaction

from base.clock import database_now
from base.faults import declare, fault_point
from forge import limits, receipts
from forge.assignments import watching
from forge.models import Assignment, AssignmentCredential
from forge.names import ref_of
from forge.states import TERMINAL, TargetKind
from runs.models import Run
from work.models import Job

log = structlog.get_logger(__name__)

FINISHING = declare("assignments.finishing", "the end of an attempt is written, not committed")

_CODE = re.compile(r"[^A-Za-z0-9_:.\-]+")


def finish(assignment: Assignment, state: str, commit: str | None = None, reason: Any = None) -> Assignment:
    """End the attempt; returns it. One that has ended is returned unchanged: the first end stands.

    Its credential is revoked at the same moment. `commit` is what it left on its branch, by default what its last push did.
    What it started and is not over yet is due to be stopped. Raises ValueError for a state that is no end.
    """
    if state not in TERMINAL:
        raise ValueError(f"{state!r} is not an end of an attempt")
    with transaction.atomic():
        row = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
        if row.is_terminal:
            return row
        _write(row, state, commit, reason)
        # The attempt first: the database lets no credential be revoked whose attempt lives.
        AssignmentCredential.objects.filter(assignment=row, revoked_at=None).update(
            revoked_at=row.finished_at
        )
        watching.changed(row.pk)
        if row.next_step_at is not None:
            watching.wake_workers()
        fault_point(FINISHING)
    log.info("assignment_finished", assignment=str(row.pk), state=state, reason=row.failure_reason)
    return row


def reason_code(reason: Any) -> str | None:
    """A plain code of at most 128 characters: an error's own, else the text without what no code has."""
    if reason is None:
        return None
    text = _CODE.sub("_", str(getattr(reason, "code", reason))).strip("_")
    return text[: limits.REASON_CHARACTERS] or "assignment_failed"


def _write(row: Assignment, state: str, commit: str | None, reason: Any) -> None:
    now = database_now()
    row.terminal_commit = commit or receipts.last_commit(
        row.repository_id, f"assignment:{row.pk}", ref_of(row.branch)
    )
    row.terminal_branch = row.branch if row.terminal_commit else None
    row.failure_reason = reason_code(reason)
    row.state, row.finished_at = state, now
    row.lease_owner = row.lease_expires_at = None
    row.next_step_at = now if _target_lives(row) else None
    row.step_failures = 0
    row.save(
        update_fields=["terminal_commit", "terminal_branch", "failure_reason", "state", "finished_at",
                       "lease_owner", "lease_expires_at", "next_step_at", "step_failures"]
    )  # fmt: skip


def _target_lives(row: Assignment) -> bool:
    """Whether there is still a run or a job to be stopped."""
    if row.target_kind == TargetKind.COMPUTER:
        jobs = Job.objects.exclude(status__in=Job.TERMINAL_STATUSES)
        return row.work_job_id is not None and jobs.filter(pk=row.work_job_id).exists()
    runs = Run.objects.filter(conversation_id=row.conversation_id, idempotency_key=f"assignment-{row.pk}")
    return runs.exclude(state__in=Run.TERMINAL_STATES).exists()
