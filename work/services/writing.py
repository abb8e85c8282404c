"""What a worker writes while a job runs. Each write names the worker's generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from django.db import connection, transaction

from base.sql import as_json
from work import digests, limits, reports, watching
from work.errors import JobNotFound
from work.models import Job
from work.services.locking import held
from work.states import JobStatus

Fence = Literal["ok", "fenced"]


def append_report_delta(job_id: UUID, generation: int, delta: str, *, offset: int | None = None) -> Fence:
    """Add text to the job's report so far; what goes beyond 8,000 bytes is cut on a character boundary.

    With `offset` the text replaces whatever follows the first `offset` bytes: a continuation that is asked for again
    writes over the half of it that an earlier worker left (see `JobStep.report_offset`).
    """
    with transaction.atomic():
        job = _held(job_id, generation)
        if job is None:
            return "fenced"
        text = reports.appended(job.report or "", delta, offset)
        if text != (job.report or ""):
            Job.objects.filter(pk=job.pk).update(report=text)
            watching.wake_watchers(job_id)
    return "ok"


def record_continuation(
    job_id: UUID, generation: int, usage: Mapping[str, Any] | None = None, *, counted: bool = True
) -> Fence:
    """Count one answer of the model and add up its usage; numbers of the same name are summed.

    A job's first answer is not `counted`: it continues nothing.
    """
    with transaction.atomic():
        job = _held(job_id, generation)
        if job is None:
            return "fenced"
        Job.objects.filter(pk=job.pk).update(
            continuation_count=job.continuation_count + int(counted),
            usage=summed(job.usage, usage or {}),
            failures=0,
            failure_code=None,
        )
    return "ok"


def record_usage(job_id: UUID, generation: int, usage: Mapping[str, Any]) -> Fence:
    """Add up what an answer used that broke off: it is paid for, and continues nothing."""
    with transaction.atomic():
        job = _held(job_id, generation)
        if job is None:
            return "fenced"
        Job.objects.filter(pk=job.pk).update(usage=summed(job.usage, usage))
    return "ok"


def checkpoint_delegation_session(job_id: UUID, generation: int, session_id: str) -> Fence:
    """Keep the session by which the delegated work can be resumed, if the job runs and `generation` is its newest.

    Raises ValueError for a session id that is empty or longer than 512 bytes.
    """
    text = session_id.replace("\0", "")
    if not text or len(text.encode()) > limits.SESSION_ID_BYTES:
        raise ValueError(f"a session id has 1 to {limits.SESSION_ID_BYTES} bytes")
    with connection.cursor() as cursor:
        cursor.execute(_CHECKPOINT, [as_json(text), job_id, generation])
        return "ok" if cursor.rowcount else "fenced"


_CHECKPOINT = """
    update work_jobs set delegation = jsonb_set(delegation, '{resume_session_id}', %s)
    where id = %s and generation = %s and status = 'running' and kind = 'delegation'
"""


def summed(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The two maps as one: numbers are added, maps are summed within, of anything else the later counts, but that no number is lost. Pure."""
    total = dict(before)
    for key, value in digests.storable_json(dict(more)).items():
        known = total.get(key)
        if isinstance(value, dict):
            total[key] = summed(known if isinstance(known, dict) else {}, value)
        elif _is_number(value) and _is_number(known):
            total[key] = known + value
        elif value is not None and not _is_number(known):
            total[key] = value
    return total


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _held(job_id: UUID, generation: int) -> Job | None:
    try:
        job = held(job_id)
    except JobNotFound:
        return None
    return job if job.generation == generation and job.status == JobStatus.RUNNING else None
