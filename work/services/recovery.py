"""Taking up again what nobody holds: after a start, and now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import connection, transaction

from base import leases
from base.sql import ClockTimestamp
from work import limits, watching
from work.models import Job
from work.services import interruptions
from work.services.finishing import finish_job
from work.states import ACTIVE, JobStatus

log = structlog.get_logger(__name__)

StartWorker = Callable[[str, UUID], object]
ScheduleRetry = Callable[[Job, str, StartWorker], object]

_ACTIVE = ", ".join(f"'{status.value}'" for status in ACTIVE)
# A job that was given back to be taken up later is not interrupted: it waits.
_INTERRUPTED = f"""
    select job.id, job.generation from work_jobs job
    where job.status in ({_ACTIVE}) and {leases.free("job")}
      and (job.lease_expires_at is not null or job.next_step_at is null or job.next_step_at <= clock_timestamp())
      {{only}} order by job.created_at
"""  # noqa: S608 - constants of ours
_ONLY_ENDED = "and job.lease_expires_at is not null"
_WAKE = f"""
    update work_jobs job set next_step_at = clock_timestamp()
    where job.id = %s and job.status in ({_ACTIVE}) and {leases.free("job")}
"""  # noqa: S608 - constants of ours
_RELEASE_ORPHANS = f"""
    update work_jobs job set next_step_at = clock_timestamp()
    where job.lease_owner is not null and job.next_step_at > clock_timestamp() and {leases.free("job")}
"""  # noqa: S608


@dataclass
class Recovery:
    """What a recovery did."""

    found: int = 0
    started: int = 0
    deferred: int = 0


def recover_interrupted_jobs(
    start_worker: StartWorker | None = None, schedule_retry: ScheduleRetry | None = None
) -> Recovery:
    """Start a worker for every job that has not ended and that nobody holds, and record once that it was interrupted.

    `start_worker(kind, job_id)` raises an error with a `.code` where it cannot; the job is then left as it is and
    `schedule_retry(job, code, start_worker)` is called. By default the job is made due for any worker, and a failed
    start is tried again after growing delays (the job's `start_failures`), by the next recovery or by a worker; after
    the last one the job ends as interrupted. What somebody holds is left alone. Safe to run at any time, twice, at once.
    """
    return _recover(interrupted_jobs(), start_worker or wake, schedule_retry or retry_later)


def sweep_ended_leases() -> Recovery:
    """Take up again what somebody held and holds no more. Every minute."""
    return _recover(interrupted_jobs(only_ended_leases=True), wake, retry_later)


def interrupted_jobs(*, only_ended_leases: bool = False) -> dict[UUID, int]:
    """The jobs that have not ended, that nobody holds, and that are not waiting for a time to come; oldest first.

    Each with the generation that it was found at: who takes it up meanwhile is not recorded as interrupted.
    """
    with connection.cursor() as cursor:
        cursor.execute(_INTERRUPTED.format(only=_ONLY_ENDED if only_ended_leases else ""))
        return dict(cursor.fetchall())


def release_orphans() -> int:
    """Make due at once what workers held that are dead by now; returns how many jobs. One small query."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE_ORPHANS)
        return int(cursor.rowcount)


def wake(kind: str, job_id: UUID) -> None:
    """Make the job due for any worker, and tell the workers."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WAKE, [job_id])
        watching.wake_workers()


def retry_later(job: Job, code: str, start_worker: StartWorker) -> bool:
    """Defer the start of a job after a failed one: 250 ms, doubling up to 8 s, then 15 s; then it ends as interrupted.

    Returns whether there is another try. Of two that see the same failure one counts it.
    """
    if job.start_failures >= len(limits.START_RETRIES):
        finish_job(job.pk, JobStatus.INTERRUPTED, error_code=interruptions.RESTARTED)
        return False
    delay = limits.START_RETRIES[job.start_failures]
    Job.objects.filter(
        pk=job.pk, start_failures=job.start_failures, generation=job.generation, status__in=list(ACTIVE)
    ).update(
        start_failures=job.start_failures + 1,
        lease_owner=None,
        lease_expires_at=None,
        next_step_at=ClockTimestamp() + delay,
    )
    return True


def _recover(found: dict[UUID, int], start_worker: StartWorker, schedule_retry: ScheduleRetry) -> Recovery:
    recovery = Recovery(found=len(found))
    for job_id, generation in found.items():
        try:
            _recover_one(job_id, generation, start_worker, schedule_retry, recovery)
        except Exception:
            connection.ensure_connection()  # raises if it is the database that is gone
            log.exception("job_not_recovered", job=str(job_id))
    if recovery.found:
        log.warning("jobs_recovered", found=recovery.found, deferred=recovery.deferred)
    return recovery


def _recover_one(
    job_id: UUID,
    generation: int,
    start_worker: StartWorker,
    schedule_retry: ScheduleRetry,
    recovery: Recovery,
) -> None:
    job = Job.objects.get(pk=job_id)
    if job.is_terminal or job.generation != generation:
        return  # it ended, or somebody took it up since it was found
    interruptions.record(job, generation)
    try:
        start_worker(job.kind, job.pk)
        recovery.started += 1
    except Exception as error:
        code = getattr(error, "code", None)
        if not isinstance(code, str):
            raise
        recovery.deferred += 1
        schedule_retry(job, code, start_worker)
