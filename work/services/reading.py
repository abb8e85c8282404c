"""Reading jobs and their steps."""

from __future__ import annotations

from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from accounts.models import User
from work.errors import JobNotFound
from work.models import Job, JobStep


def get_job(job_id: UUID | str, user: User | None = None) -> Job:
    """The job; with `user`, only if it is theirs: another owner's job counts as missing. Raises JobNotFound. One query."""
    try:
        wanted = UUID(str(job_id))
    except ValueError:
        raise JobNotFound from None
    jobs = Job.objects.filter(pk=wanted)
    if user is not None:
        jobs = jobs.filter(owner_visitor__user=user, conversation__deleted_at=None)
    job = jobs.first()
    if job is None:
        raise JobNotFound
    return job


def seconds_until_due(job_id: UUID) -> float:
    """Until a worker may take the job up again; 0 for one that is due or has ended. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select greatest(0, extract(epoch from next_step_at - clock_timestamp())) from work_jobs where id = %s",
            [job_id],
        )
        row = cursor.fetchone()
    return float(row[0]) if row and row[0] is not None else 0.0


def list_job_steps(job: Job | UUID) -> list[JobStep]:
    """The job's steps in the order in which they were asked for. One query."""
    job_id = job.pk if isinstance(job, Job) else job
    return list(JobStep.objects.raw(_STEPS, [job_id]))


_STEPS = "select * from work_job_steps where work_job_id = %s order by sequence"


def list_jobs(conversation_id: UUID) -> QuerySet[Job]:
    """The jobs of a conversation, newest first. One query to list."""
    return Job.objects.filter(conversation_id=conversation_id)
