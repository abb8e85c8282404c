"""Who drives a job: claiming it, keeping it, giving it back.

A claim is one statement that takes the lease and bumps the generation; from then on nobody with an older generation can
write. A held job is due again when its lease ends, so a due job is one that nobody is at work on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import structlog
from django.db import connection, transaction

from base import leases
from base.faults import declare, fault_point
from base.pump import Holder
from work import limits, watching
from work.errors import JobFenced, JobHeld, JobTerminal
from work.models import Job
from work.services import interruptions
from work.services.finishing import error_code_of, finish_job
from work.services.locking import locked
from work.services.reading import get_job
from work.states import ACTIVE, JobKind, JobStatus

log = structlog.get_logger(__name__)

CLAIMED = declare("jobs.claimed", "a job is claimed; nothing is asked of the model or the machine")

_ACTIVE = ", ".join(f"'{status.value}'" for status in ACTIVE)
_CLAIM = """
    with due as (
        select job.id, job.generation as before, job.status = 'running' and job.lease_expires_at is not null as was_held
        from work_jobs job where job.status in ({active}) and {which}
        order by job.next_step_at limit %(limit)s for no key update of job skip locked)
    update work_jobs job set {take},
        status = 'running',
        started_at = coalesce(job.started_at, clock_timestamp()),
        attempts = job.attempts + 1,
        start_failures = 0,
        next_step_at = clock_timestamp() + make_interval(secs => %(lease)s),
        model_id = coalesce(%(model_id)s, job.model_id),
        instruction_digest = coalesce(%(instruction_digest)s, job.instruction_digest),
        tool_catalog_digest = coalesce(%(tool_catalog_digest)s, job.tool_catalog_digest),
        memory_snapshot_ref = coalesce(%(memory_snapshot_ref)s, job.memory_snapshot_ref,
            case when job.kind = 'deep_work' then 'conversation:' || job.conversation_id || '@'
                || to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') end)
    from due where job.id = due.id
    returning job.id, due.before, due.was_held
"""


@dataclass(frozen=True, slots=True)
class Captured:
    """What drives the job from this claim on, as far as it is known."""

    model_id: str | None = None
    instruction_digest: str | None = None
    tool_catalog_digest: str | None = None
    memory_snapshot_ref: str | None = None


def claim_for_run(
    job_id: UUID,
    holder: Holder | None = None,
    *,
    captured: Captured | None = None,
    only_if_free: bool = False,
) -> Job:
    """Take the job, whoever holds it: a queued one starts, a running one is taken over with its first start kept.

    The claimant owns it by the new generation alone; what an earlier holder still writes is refused. With
    `only_if_free` a job that somebody is at work on is left alone. Raises JobNotFound, JobTerminal, JobHeld.
    """
    which = "job.id = %(id)s" + (f" and {leases.free('job')}" if only_if_free else "")
    with transaction.atomic():
        if not _claim(which, holder or Holder(), captured, {"id": job_id, "limit": 1}):
            job = locked(job_id)  # waits for whoever has the row, then knows
            if job.is_terminal:
                raise JobTerminal
            if not _claim(which, holder or Holder(), captured, {"id": job_id, "limit": 1}):
                raise JobHeld
        job = get_job(job_id)
        watching.wake_watchers(job_id)
    fault_point(CLAIMED)
    return job


def claim_due(
    holder: Holder,
    limit: int,
    *,
    kinds: Iterable[str] = JobKind.values,
    captured: Captured | None = None,
) -> list[Job]:
    """At most `limit` due jobs that nobody holds, leased to `holder`.

    Jobs whose end was asked for end here, as do those that were taken up again and again without a step of progress;
    they are not returned. Safe beside other claimants: no job is given to two.
    """
    which = f"job.next_step_at <= clock_timestamp() and job.kind = any(%(kinds)s) and {leases.free('job')}"
    with transaction.atomic():
        rows = _claim(which, holder, captured, {"limit": limit, "kinds": list(kinds)})
        interrupted = {row[0]: row[1] for row in rows if row[2]}
        jobs = list(Job.objects.filter(pk__in=[row[0] for row in rows]).order_by("created_at"))
        for job in jobs:
            watching.wake_watchers(job.pk)
    if jobs:
        fault_point(CLAIMED)
    for job in jobs:
        if job.pk in interrupted:
            interruptions.record(job, interrupted[job.pk])
    return [job for job in jobs if not _ended_instead(job)]


def renew(held: Sequence[tuple[UUID, int]], lease_seconds: int = limits.LEASE_SECONDS) -> dict[UUID, bool]:
    """Keep these (job, generation) pairs; for each that is still held: whether its end was asked for.

    What is missing from the answer is no longer the caller's to work on. One statement.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _RENEW,
            {
                "ids": [job_id for job_id, _ in held],
                "generations": [generation for _, generation in held],
                "lease": lease_seconds,
            },
        )
        return dict(cursor.fetchall())


def look_at_held(held: Sequence[tuple[UUID, int]]) -> dict[UUID, bool]:
    """As `renew`, without renewing anything."""
    with connection.cursor() as cursor:
        cursor.execute(
            _LOOK,
            {"ids": [job_id for job_id, _ in held], "generations": [generation for _, generation in held]},
        )
        return dict(cursor.fetchall())


def release(
    job_id: UUID, generation: int, *, delay_seconds: float = 0.0, counts: bool = False
) -> Literal["ok", "fenced"]:
    """Give the job back as it is, to be taken up after `delay_seconds` by anybody; at once, if its end was asked for.

    Unless it `counts`, this claim is not one of those without progress.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_RELEASE, [delay_seconds, 0 if counts else 1, job_id, generation])
        if not cursor.rowcount:
            return "fenced"
        watching.wake_workers()
    return "ok"


def record_failure(job_id: UUID, generation: int, code: str, *, delay_seconds: float = 0.0) -> Job:
    """Note that driving the job failed with `code`: it is given back and tried again after `delay_seconds`.

    After the fifth failure in a row with the same code the job ends as failed, with that code and an incident. A committed
    step or continuation begins a new row of failures. A job whose end was asked for ends as cancelled instead. Raises JobNotFound and JobFenced.
    """
    with transaction.atomic():
        job = locked(job_id)
        if job.status != JobStatus.RUNNING or job.generation != generation:
            raise JobFenced
        if job.cancel_requested_at is not None:
            return finish_job(job_id, JobStatus.CANCELLED, error_code=job.cancel_code, generation=generation)
        known = error_code_of(code)
        failures = job.failures + 1 if job.failure_code == known else 1
        Job.objects.filter(pk=job.pk).update(failures=failures, failure_code=known)
        if failures >= limits.EQUAL_FAILURES:
            return finish_job(job_id, JobStatus.FAILED, error_code=known, generation=generation)
        release(job_id, generation, delay_seconds=delay_seconds, counts=True)
    return get_job(job_id)


_RENEW = """
    update work_jobs job set lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s),
        next_step_at = clock_timestamp() + make_interval(secs => %(lease)s)
    from unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as mine(id, generation)
    where job.id = mine.id and job.generation = mine.generation and job.status = 'running'
      and job.lease_expires_at is not null
    returning job.id, job.cancel_requested_at is not null
"""
_LOOK = """
    select job.id, job.cancel_requested_at is not null
    from work_jobs job, unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as mine(id, generation)
    where job.id = mine.id and job.generation = mine.generation and job.status = 'running'
      and job.lease_expires_at is not null
"""
_RELEASE = f"""
    update work_jobs set {leases.RELEASE}, next_step_at = clock_timestamp()
            + make_interval(secs => case when cancel_requested_at is null then %s else 0 end),
        attempts = greatest(attempts - %s, 0)
    where id = %s and generation = %s and status = 'running'
"""  # noqa: S608 - a constant of ours


def _claim(which: str, holder: Holder, captured: Captured | None, values: dict[str, Any]) -> list[Any]:
    take = leases.take("job").replace("%s", "%(owner)s", 1).replace("%s", "%(lease)s", 1)
    known = captured or Captured()
    values |= {
        "owner": holder.owner,
        "lease": holder.lease_seconds,
        "model_id": known.model_id,
        "instruction_digest": known.instruction_digest,
        "tool_catalog_digest": known.tool_catalog_digest,
        "memory_snapshot_ref": known.memory_snapshot_ref,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM.format(active=_ACTIVE, which=which, take=take), values)
        rows: list[Any] = cursor.fetchall()
    return rows


def _ended_instead(job: Job) -> bool:
    """Whether the claimed job was ended rather than to be driven. One that cannot be ended costs only itself."""
    try:
        if job.cancel_requested_at is not None:
            finish_job(job.pk, JobStatus.CANCELLED, error_code=job.cancel_code, generation=job.generation)
            return True
        if job.attempts > limits.CLAIMS_WITHOUT_PROGRESS:
            finish_job(
                job.pk, JobStatus.FAILED, error_code="work_job_attempts_exhausted", generation=job.generation
            )
            return True
    except JobFenced:
        return True
    except Exception:
        connection.ensure_connection()  # raises if it is the database that is gone
        log.exception("job_not_ended", job=str(job.pk))
        return True
    return False
