"""Locking a job's row before a transaction decides about it."""

from __future__ import annotations

from uuid import UUID

from work.errors import JobFenced, JobNotAcceptingSteps, JobNotFound
from work.models import Job
from work.states import JobStatus


def locked(job_id: UUID) -> Job:
    """The job, locked until the transaction ends. Raises JobNotFound."""
    jobs = Job.objects.select_for_update(of=("self",), no_key=True).select_related(
        "conversation", "owner_visitor__user"
    )
    job = jobs.filter(pk=job_id).first()
    if job is None:
        raise JobNotFound
    return job


def locked_for_steps(job_id: UUID, generation: int) -> Job:
    """The job for a worker that holds it. Raises JobNotFound, JobNotAcceptingSteps or JobFenced."""
    job = locked(job_id)
    if job.status != JobStatus.RUNNING:
        raise JobNotAcceptingSteps
    if job.generation != generation:
        raise JobFenced
    return job
