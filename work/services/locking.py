"""Locking a job's row before a transaction decides about it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from work.errors import JobFenced, JobNotAcceptingSteps, JobNotFound
from work.models import Job
from work.states import JobStatus

if TYPE_CHECKING:

    class Held(Job):
        """A locked job, and when it was locked by the database's clock."""

        now: datetime


def locked(job_id: UUID) -> Job:
    """The job, locked until the transaction ends. Raises JobNotFound."""
    jobs = Job.objects.select_for_update(of=("self",), no_key=True).select_related(
        "conversation", "owner_visitor__user"
    )
    job = jobs.filter(pk=job_id).first()
    if job is None:
        raise JobNotFound
    return job


def locked_for_steps(job_id: UUID, generation: int) -> Held:
    """The job for a worker that holds it. Raises JobNotFound, JobNotAcceptingSteps or JobFenced."""
    job = held(job_id)
    if job.status != JobStatus.RUNNING:
        raise JobNotAcceptingSteps
    if job.generation != generation:
        raise JobFenced
    return job


def held(job_id: UUID) -> Held:
    """The job alone, locked until the transaction ends, with the database's time as `now`. Raises JobNotFound.

    A worker's every write begins with this, so it is written out: composing it costs more than answering it.
    """
    for job in Job.objects.raw(_HELD, [job_id]):
        return cast("Held", job)
    raise JobNotFound


_HELD = "select job.*, clock_timestamp() as now from work_jobs job where job.id = %s for no key update"
