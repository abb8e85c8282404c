"""The whole redacted log of a run, in compressed chunks."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.lookups import GreaterThan

from runs.models.run import Run


class RunLogChunk(models.Model):
    """A piece of a run's redacted log. `raw_start` and `raw_end` are offsets in the log as the box wrote it; `data` is
    the redacted text of that range, compressed. Chunks of a run follow each other without gap or overlap."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="log_chunks")
    raw_start = models.BigIntegerField()
    raw_end = models.BigIntegerField()
    text_bytes = models.PositiveIntegerField(help_text="length of the text before compression")
    pieces = models.JSONField(help_text="mapping of raw ranges to text lengths inside the chunk")
    data = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "box_run_log_chunks"
        verbose_name = "piece of a run's log"
        verbose_name_plural = "pieces of runs' logs"
        ordering = ["run_id", "raw_start"]
        constraints = [
            models.UniqueConstraint(fields=["run", "raw_start"], name="box_run_log_chunks_start_index"),
            models.CheckConstraint(
                condition=GreaterThan(F("raw_end"), F("raw_start")) & Q(raw_start__gte=0),
                name="box_run_log_chunks_range_check",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.raw_start}-{self.raw_end}"
