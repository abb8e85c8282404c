"""A request for several boxes at once, and its items."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from boxes.models.box import Box
from boxes.models.labels import LONGEST_LABEL_BYTES, LabelNumber
from boxes.states import HOLDS_LABEL, FanoutState, ItemState
from conversations.models import Conversation


class FanoutRequest(models.Model):
    """A durable plan: what was asked, under which limits, and how far it came."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="fanouts")
    requesting_principal = models.JSONField()
    requested_count = models.PositiveIntegerField()
    budgeted = models.BooleanField(default=False)
    effective_limits = models.JSONField()
    state = models.CharField(max_length=8, choices=FanoutState.choices, default=FanoutState.QUEUED)
    admitted_count = models.PositiveIntegerField(default=0)
    queued_count = models.PositiveIntegerField(default=0)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "box_fanout_requests"
        verbose_name = "plan of several boxes"
        verbose_name_plural = "plans of several boxes"
        ordering = ["-created_at", "-id"]
        permissions = [("cancel_fanoutrequest", "Can end what of a plan still waits")]
        constraints = [
            models.CheckConstraint(
                condition=Q(requested_count__gt=0) & Q(admitted_count__gte=0) & Q(queued_count__gte=0),
                name="box_fanout_requests_counts_check",
            ),
            models.CheckConstraint(
                condition=Q(state__in=FanoutState.values), name="box_fanout_requests_state_check"
            ),
        ]
        indexes = [
            models.Index(fields=["conversation", "-created_at"], name="box_fanout_requests_list_index"),
            models.Index(fields=["-created_at"], name="box_fanout_requests_new_index"),
        ]

    def __str__(self) -> str:
        return "1 box" if self.requested_count == 1 else f"{self.requested_count} boxes"


class FanoutItem(models.Model):
    """One box of a plan. Queued, it has nothing at the provider; admitted, it has its row in the ledger."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    request = models.ForeignKey(FanoutRequest, on_delete=models.PROTECT, related_name="items")
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveIntegerField()
    queue_sequence = models.BigIntegerField(
        unique=True, help_text="global order of asking; kept over retries"
    )
    label = models.CharField(max_length=LONGEST_LABEL_BYTES)
    state = models.CharField(max_length=8, choices=ItemState.choices, default=ItemState.QUEUED)
    queue_reason = models.CharField(max_length=64, null=True, blank=True)
    box = models.OneToOneField(Box, null=True, blank=True, on_delete=models.SET_NULL, related_name="fanout_item",
                               db_column="conversation_box_id")  # fmt: skip
    estimated_burn_rate_microusd = models.BigIntegerField(default=0)
    requesting_principal = models.JSONField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    queued_at = models.DateTimeField(
        null=True, blank=True, help_text="since when it waits; kept over retries"
    )
    released_at = models.DateTimeField(
        null=True, blank=True, help_text="when its box stopped and freed the label"
    )
    refusals = models.PositiveIntegerField(default=0, help_text="refusals by the provider")
    next_attempt_at = models.DateTimeField(
        null=True, blank=True, help_text="not tried again before; null: any time"
    )

    class Meta:
        db_table = "box_fanout_items"
        verbose_name = "planned box"
        verbose_name_plural = "planned boxes"
        ordering = ["queue_sequence"]
        constraints = [
            models.UniqueConstraint(fields=["request", "position"], name="box_fanout_items_position_index"),
            models.UniqueConstraint(
                fields=["conversation", "label"],
                condition=Q(state__in=[str(state) for state in HOLDS_LABEL], released_at__isnull=True),
                name="box_fanout_items_active_label_index",
            ),
            models.CheckConstraint(
                condition=Q(state__in=ItemState.values), name="box_fanout_items_state_check"
            ),
            models.CheckConstraint(
                condition=Q(estimated_burn_rate_microusd__gte=0), name="box_fanout_items_estimate_check"
            ),
        ]
        indexes = [
            models.Index(
                F("queue_sequence"), condition=Q(state="queued"), name="box_fanout_items_queue_index"
            ),
            models.Index("conversation", LabelNumber("label"), name="box_fanout_items_number_index"),
        ]

    def __str__(self) -> str:
        return self.label
