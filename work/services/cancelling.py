"""Asking for the end of a job. The request is a column: it outlives whoever was to hear of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet

from accounts.models import User
from base import leases
from base.clock import database_now
from conversations.models import Conversation
from work import watching
from work.models import Job
from work.services.finishing import finish_job
from work.services.locking import locked
from work.states import ACTIVE, JobKind, JobStatus

log = structlog.get_logger(__name__)

CANCELLED = "cancelled"
_ACTIVE = [status.value for status in ACTIVE]


def cancel_job(job_id: UUID, code: str = CANCELLED) -> Job:
    """Ask for the end of a job; returns it as it is now. A job that has ended is returned unchanged.

    A job that nobody is at work on ends as cancelled at once, with `code`. Of one that a worker holds the request is kept
    (its first time and code stand), the worker is woken, and `cancel_requested_at` says that it is stopping; if
    the worker dies, whoever takes the job up next ends it. Raises JobNotFound.
    """
    with transaction.atomic():
        job = locked(job_id)
        if job.is_terminal:
            return job
        if job.cancel_requested_at is None:
            job.cancel_requested_at, job.cancel_code = database_now(), code
            job.save(update_fields=["cancel_requested_at", "cancel_code"])
        if _is_free(job_id):
            return finish_job(job_id, JobStatus.CANCELLED, error_code=job.cancel_code)
        watching.wake_watchers(job_id)
        watching.wake_workers()
    return job


def cancel_active_delegations(conversation: Conversation | UUID, except_job: UUID | None = None) -> int:
    """Ask for the end of every delegation of a conversation but that one; returns how many."""
    conversation_id = conversation.pk if isinstance(conversation, Conversation) else conversation
    jobs = Job.objects.filter(conversation_id=conversation_id, kind=JobKind.DELEGATION)
    return _cancel_all(jobs.exclude(pk=except_job) if except_job else jobs, CANCELLED)


def cancel_of_owner(owner: User | Conversation | Any) -> int:
    """Ask for the end of every job of a user or a conversation that is being deleted; returns how many."""
    if isinstance(owner, Conversation):
        return _cancel_all(Job.objects.filter(conversation=owner), "owner_deleted")
    if isinstance(owner, User):
        return _cancel_all(Job.objects.filter(owner_visitor__user=owner), "owner_deleted")
    return 0


def cancel_of_machine(machine: Any) -> int:
    """Ask for the end of every delegation to a machine that was revoked; returns how many."""
    return _cancel_all(Job.objects.filter(machine=machine), "machine_revoked")


def _cancel_all(jobs: QuerySet[Job], code: str) -> int:
    ids: Iterable[UUID] = list(jobs.filter(status__in=_ACTIVE).values_list("pk", flat=True))
    return sum(_cancelled(job_id, code) for job_id in ids)


def _cancelled(job_id: UUID, code: str) -> bool:
    """One that cannot be cancelled costs only itself."""
    try:
        with transaction.atomic():
            cancel_job(job_id, code)
    except Exception:
        connection.ensure_connection()
        log.exception("job_not_cancelled", job=str(job_id))
        return False
    return True


def _is_free(job_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"select {leases.free('job')} from work_jobs job where job.id = %s", [job_id])  # noqa: S608
        row = cursor.fetchone()
    return bool(row and row[0])
