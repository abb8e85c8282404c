"""What reconciliation noticed and staff may have to handle."""

from __future__ import annotations

import uuid

import pghistory
import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q

from boxes.states import EventType, Resolution

WATCHED = ["handled_at", "resolution", "reopened_at"]


@pghistory.track(
    pghistory.InsertEvent(level=pgtrigger.Statement),
    pghistory.UpdateEvent(level=pgtrigger.Statement, condition=pgtrigger.AnyChange(*WATCHED)),
    fields=["event_type", "owned", "handled_by", *WATCHED],
    model_name="ReconciliationEventHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "box_reconciliation_events_history"},
)
class ReconciliationEvent(models.Model):
    """One thing noticed about one provider box; seen again, the same row says when last."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    provider_box_id = models.CharField(max_length=200)
    event_type = models.CharField(max_length=20, choices=EventType.choices)
    reason = models.CharField(max_length=128)
    details = models.JSONField(default=dict, help_text="the provider's list entry, secrets struck out")
    owned = models.BooleanField(default=False, help_text="it carries this installation's name")
    box = models.ForeignKey(
        "boxes.Box", null=True, blank=True, on_delete=models.PROTECT, related_name="events"
    )
    observed_at = models.DateTimeField(help_text="first sighting")
    last_seen_at = models.DateTimeField(null=True, blank=True)
    reopened_at = models.DateTimeField(
        null=True, blank=True, help_text="when it came back after being handled"
    )
    stop_attempted_at = models.DateTimeField(null=True, blank=True)
    stopping_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="somebody is asking for its stop, at most until then"
    )
    handled_at = models.DateTimeField(null=True, blank=True)
    handled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    resolution = models.CharField(max_length=9, choices=Resolution.choices, null=True, blank=True)

    class Meta:
        db_table = "box_reconciliation_events"
        verbose_name = "sighting"
        ordering = ["-observed_at", "-id"]
        permissions = [("handle_reconciliationevent", "Can stop, adopt and dismiss leaks")]
        constraints = [
            models.UniqueConstraint(
                fields=["provider_box_id", "event_type"],
                name="box_reconciliation_events_provider_box_id_event_type_index",
            ),
            models.CheckConstraint(
                condition=Q(event_type__in=EventType.values), name="box_reconciliation_events_type_check"
            ),
            models.CheckConstraint(
                condition=Q(resolution__isnull=True) | Q(handled_at__isnull=False),
                name="box_reconciliation_events_handled_check",
            ),
        ]
        indexes = [
            models.Index(
                fields=["event_type", "observed_at"],
                condition=Q(handled_at__isnull=True),
                name="box_events_open_index",
            ),
            models.Index(fields=["-observed_at"], name="box_events_newest_index"),
            models.Index(fields=["event_type", "-observed_at"], name="box_events_type_index"),
            models.Index(
                fields=["resolution", "-observed_at"],
                condition=Q(resolution__isnull=False),
                name="box_events_resolution_index",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.provider_box_id}"


class WebhookDelivery(models.Model):
    """A delivery of the provider's webhook that was taken: kept so that the same one is not taken twice.

    `box` is the row that it spoke of, if there was one. It is looked at once (`looked_at`).
    """

    delivery_id = models.CharField(primary_key=True, max_length=200)
    event_type = models.CharField(max_length=64)
    provider_box_id = models.CharField(max_length=200, blank=True)
    box = models.ForeignKey("boxes.Box", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    received_at = models.DateTimeField(db_index=True)
    looked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "box_webhook_deliveries"
        verbose_name = "delivery of the provider"
        verbose_name_plural = "deliveries of the provider"
        ordering = ["-received_at"]
        indexes = [
            models.Index(
                fields=["received_at"],
                condition=Q(looked_at__isnull=True),
                name="box_webhook_due_index",
            )
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.delivery_id}"
