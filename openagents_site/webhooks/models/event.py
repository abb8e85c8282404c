"""What happened, written by the ledgers' triggers in the transaction in which it happened."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from openagents_site.webhooks.models.subscription import Subscription


class Event(models.Model):
    """One event. `row` is the ledger row as it was right after the change; `payload` is what is sent, made from it once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    event_type = models.CharField(max_length=40)
    object_id = models.UUIDField()
    row = models.JSONField(default=dict, editable=False)
    occurred_at = models.DateTimeField()
    only_for = models.ForeignKey(
        Subscription,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="the one webhook that is told, if it is a test",
    )
    payload = models.TextField(null=True, blank=True)
    fanned_out_at = models.DateTimeField(
        null=True, blank=True, help_text="when its deliveries were made; null: not yet"
    )

    class Meta:
        db_table = "webhook_events"
        ordering = ["-occurred_at", "-id"]
        indexes = [
            models.Index(fields=["-occurred_at", "-id"], name="webhook_events_newest_index"),
            models.Index(fields=["object_id"], name="webhook_events_object_index"),
            models.Index(
                fields=["occurred_at"],
                condition=Q(fanned_out_at__isnull=True),
                name="webhook_events_due_index",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.message_id}"

    @property
    def message_id(self) -> str:
        """What receivers know it by: the same in every try, every replay and every webhook."""
        return f"evt_{self.id.hex}"
