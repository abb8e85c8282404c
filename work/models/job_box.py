"""Which boxes a job made."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from boxes.models import Box
from work.models.job import Job


class JobBox(models.Model):
    """A box that a job asked for: written before the box is, and found again by its key, so that no death in between can
    leave a box that the job's end does not know of."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="job_boxes")
    create_key = models.CharField(
        max_length=255, unique=True, help_text="the key that the box is created with"
    )
    # Without a constraint: the row of a box whose creation was refused is deleted.
    box = models.ForeignKey(
        Box, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+", null=True, blank=True
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "work_job_boxes"
        verbose_name = "box of a job"
        verbose_name_plural = "boxes of jobs"
        ordering = ["id"]

    def __str__(self) -> str:
        return self.create_key
