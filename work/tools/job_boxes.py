"""The boxes that jobs made, and their end with the job."""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db import connection

from boxes.models import Box
from boxes.states import StopReason
from boxes.stopping import ask_stop
from runs.models import Run
from runs.services.cancelling import request_cancellation
from runs.states import ACTIVE
from work.models import Job, JobBox
from work.states import TERMINAL, JobKind, JobStatus

log = structlog.get_logger(__name__)


def note(job_id: UUID, create_key: str) -> None:
    """Write down, before it is asked for, that the job makes a box with this key."""
    JobBox.objects.get_or_create(job_id=job_id, create_key=create_key)


def bind(job_id: UUID, create_key: str, box: Box) -> None:
    """Write down which box it is; it is stopped if the job has ended meanwhile."""
    JobBox.objects.filter(create_key=create_key).update(box=box)
    if Job.objects.filter(pk=job_id, status__in=list(TERMINAL), keep_boxes=False).exists():
        ask_stop(box, StopReason.USER_REQUESTED)


def stop_boxes_of(job: Job) -> int:
    """The end of what the job made, in the transaction that ends it: its boxes, unless they are kept, and of a cancelled job
    also the commands that it left running elsewhere. Returns how many boxes."""
    if job.kind != JobKind.DEEP_WORK:
        return 0
    if job.status == JobStatus.CANCELLED:
        mine = Run.objects.filter(
            conversation_id=job.conversation_id,
            state__in=list(ACTIVE),
            requesting_principal={"type": "job", "id": str(job.pk)},
        )
        request_cancellation(list(mine.values_list("pk", flat=True)))
    if job.keep_boxes:
        return 0
    keys = list(JobBox.objects.filter(job=job).values_list("create_key", flat=True))
    alive = Box.objects.filter(create_key__in=keys, stopped_at=None) if keys else ()
    return sum(ask_stop(box, StopReason.USER_REQUESTED) for box in alive)


def stop_left_behind() -> int:
    """Stop boxes of jobs that have ended and that nobody has stopped: their creation was still under way then. Every minute.
    Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_BEHIND, {"ended": [status.value for status in TERMINAL]})
        found = [row[0] for row in cursor.fetchall()]
    stopped = 0
    for box in Box.objects.filter(pk__in=found):
        stopped += ask_stop(box, StopReason.USER_REQUESTED)
        log.warning("box_left_behind", box=str(box.pk))
    return stopped


_LEFT_BEHIND = """
    select box.id from conversation_boxes box
    join work_job_boxes made on made.create_key = box.create_key
    join work_jobs job on job.id = made.job_id
    where box.stopped_at is null and box.stop_requested_at is null
      and job.status = any(%(ended)s) and not job.keep_boxes
"""
