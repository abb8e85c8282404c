"""What has to be told to one webhook, and every try to do so."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from base.leases import Leased
from openagents_site.webhooks.models.event import Event
from openagents_site.webhooks.models.subscription import Subscription
from openagents_site.webhooks.states import DeliveryState


class Delivery(Leased):
    """One event for one webhook. Due at `next_attempt_at`; null: never again."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="deliveries")
    subscription = models.ForeignKey(
        Subscription, on_delete=models.CASCADE, related_name="deliveries", verbose_name="webhook"
    )
    state = models.CharField(max_length=9, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(default=0, help_text="tries so far, those before a replay too")
    failures = models.PositiveIntegerField(default=0, help_text="failed tries since it was made or replayed")
    replays = models.PositiveIntegerField(default=0)
    last_status = models.PositiveIntegerField(null=True, blank=True, help_text="HTTP status of the last try")
    last_error = models.CharField(
        max_length=40, null=True, blank=True, help_text="why the last try had no answer"
    )
    created_at = models.DateTimeField(db_default=Now())
    next_attempt_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "webhook_deliveries"
        verbose_name_plural = "deliveries"
        ordering = ["-created_at", "-id"]
        permissions = [("replay_delivery", "Can send deliveries again")]
        constraints = [
            models.UniqueConstraint(fields=["event", "subscription"], name="webhook_deliveries_once_index"),
            models.CheckConstraint(
                condition=Q(state__in=DeliveryState.values), name="webhook_deliveries_state_check"
            ),
            models.CheckConstraint(
                condition=Q(state=DeliveryState.PENDING, next_attempt_at__isnull=False, ended_at__isnull=True)
                | (~Q(state=DeliveryState.PENDING) & Q(next_attempt_at__isnull=True, ended_at__isnull=False)),
                name="webhook_deliveries_due_check",
            ),
        ]
        indexes = [
            models.Index(
                fields=["subscription", "next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="webhook_deliveries_due_index",
            ),
            models.Index(
                fields=["subscription"],
                condition=Q(lease_expires_at__isnull=False),
                name="webhook_deliveries_held_index",
            ),
            models.Index(fields=["subscription", "-created_at", "-id"], name="webhook_deliveries_list_index"),
            models.Index(fields=["-created_at", "-id"], name="webhook_deliveries_new_index"),
            models.Index(
                fields=["ended_at"], condition=Q(ended_at__isnull=False), name="webhook_deliveries_old_index"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event.event_type} ({self.state})"


class Attempt(models.Model):
    """One try. What the receiver wrote is not kept: only how it answered, and how long that took."""

    id = models.BigAutoField(primary_key=True)
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempt_log")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    status = models.PositiveIntegerField(null=True, blank=True)
    error = models.CharField(max_length=40, null=True, blank=True)

    class Meta:
        db_table = "webhook_attempts"
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="webhook_attempts_number_index")
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.status or self.error}"
