"""What the processes of one installation share: its name at the provider, slots of periodic work, signs of life."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from base.leases import Leased


class Installation(models.Model):
    """The one row of facts that were decided once and must never change by accident."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    ownership_marker = models.CharField(max_length=120)
    absence_suspected_at = models.DateTimeField(
        null=True, blank=True, help_text="the last pass found most boxes missing, and wrote none of them off"
    )
    creates_held_until = models.DateTimeField(
        null=True, blank=True, help_text="until when the provider asked for no further box to be created"
    )

    class Meta:
        db_table = "installation"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="installation_single_row_check")]

    def __str__(self) -> str:
        return self.ownership_marker


class ScheduleSlot(Leased):
    """When a periodic pass is due next. Whoever claims the slot runs the pass; a second delivery finds it taken."""

    name = models.CharField(primary_key=True, max_length=40)
    interval_ms = models.BigIntegerField()
    initial_delay_ms = models.BigIntegerField()
    next_at = models.DateTimeField()
    failures = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.JSONField(
        null=True, blank=True, help_text="what the last pass counted, or its error code"
    )

    class Meta:
        db_table = "schedule_slots"
        verbose_name = "periodic pass"
        verbose_name_plural = "periodic passes"
        permissions = [("run_scheduleslot", "Can run a periodic pass now")]
        constraints = [
            models.CheckConstraint(
                condition=Q(interval_ms__gt=0) & Q(initial_delay_ms__gte=0), name="schedule_slots_times_check"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ProcessHeartbeat(models.Model):
    """When a process of the installation last did its work, written by that work itself."""

    name = models.CharField(primary_key=True, max_length=80)
    stamped_at = models.DateTimeField()
    details = models.JSONField(default=dict)

    class Meta:
        db_table = "process_heartbeats"
        verbose_name = "process"
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return self.name


class BudgetNotice(models.Model):
    """That a spent budget was reported: at most one report a day and subject."""

    id = models.BigAutoField(primary_key=True)
    subject = models.CharField(max_length=64, help_text="the id of the owner, or `installation`")
    day = models.DateField()

    class Meta:
        db_table = "box_budget_notices"
        constraints = [
            models.UniqueConstraint(fields=["subject", "day"], name="box_budget_notices_day_index")
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.day}"
