"""The ledger row of one box."""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import cached_property
from typing import Any

import pghistory
import pgtrigger
from django.db import models
from django.db.models import Q
from django.utils import timezone

from base.guards import Immutable, WriteOnce
from base.leases import Leased
from boxes.conf import box_api
from boxes.lifetime import LeaseEnd, lease_end
from boxes.models.labels import LONGEST_LABEL_BYTES, LabelNumber
from boxes.states import BoxState, SetupStatus, StopReason
from conversations.models import Conversation

TRACKED = ["box_id", "label", "state", "setup_status", "stop_requested_at", "stopped_at", "stop_reason",
           "lifetime_seconds", "settled_cost_microusd", "usage_settled_at", "extended_until", "generation"]  # fmt: skip
WATCHED = [field for field in TRACKED if field != "generation"]


@pghistory.track(
    pghistory.InsertEvent(level=pgtrigger.Statement),
    pghistory.UpdateEvent(level=pgtrigger.Statement, condition=pgtrigger.AnyChange(*WATCHED)),
    fields=TRACKED,
    model_name="BoxHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "conversation_boxes_history"},
)
class Box(Leased):
    """One box, from the moment its creation was decided.

    The row is written before the provider is asked, so a box that exists always has a row. `box_id` is null until the
    provider's answer is known. A row holds quota until `stopped_at` is set, which happens once.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="boxes")
    box_id = models.CharField("provider id", max_length=200, null=True, blank=True, unique=True)
    label = models.CharField(max_length=LONGEST_LABEL_BYTES)
    state = models.CharField(max_length=12, choices=BoxState.choices, default=BoxState.PROVISIONING)
    setup_status = models.CharField(max_length=7, choices=SetupStatus.choices, default=SetupStatus.PENDING)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    budgeted = models.BooleanField(default=False)
    estimated_burn_rate_microusd = models.BigIntegerField(
        default=0, help_text="An admission figure, never spending."
    )

    # Creation: what is needed to ask again with the same key, from this row alone.
    create_key = models.CharField(max_length=255, null=True, blank=True, unique=True, editable=False)
    create_body = models.JSONField(null=True, blank=True, editable=False)
    create_attempted_at = models.DateTimeField(null=True, blank=True, help_text="first attempt")
    create_attempts = models.PositiveIntegerField(default=0)
    create_error = models.CharField(
        max_length=128, null=True, blank=True, help_text="code of the last trouble with it"
    )
    create_unknown = models.BooleanField(
        default=False, help_text="an attempt may have succeeded without an answer"
    )
    marked_at = models.DateTimeField(null=True, blank=True, help_text="when our name was given to it")
    ready_checks = models.PositiveIntegerField(default=0, help_text="looks at it until it was ready")
    provision_failures = models.PositiveIntegerField(default=0, help_text="steps in a row without success")
    next_provision_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="when the worker goes on with its creation or with a stop that was asked for",
    )

    # Life
    last_activity_at = models.DateTimeField(null=True, blank=True, help_text="last synchronous command")
    extended_until = models.DateTimeField(null=True, blank=True)

    # Stop
    stop_requested_at = models.DateTimeField(null=True, blank=True, help_text="the stop claim")
    stop_requested_reason = models.CharField(max_length=20, choices=StopReason.choices, null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    stop_reason = models.CharField(max_length=20, choices=StopReason.choices, null=True, blank=True)

    # Money
    lifetime_seconds = models.BigIntegerField(null=True, blank=True)
    settled_cost_microusd = models.BigIntegerField(null=True, blank=True)
    usage_settled_at = models.DateTimeField(null=True, blank=True)
    next_settlement_at = models.DateTimeField(null=True, blank=True)
    settlement_attempts = models.PositiveIntegerField(default=0, help_text="looks without a figure")

    # Reconciliation
    last_reconciled_at = models.DateTimeField(null=True, blank=True)
    reconciliation_failures = models.IntegerField(default=0)
    reconciliation_error = models.CharField(max_length=128, null=True, blank=True)
    next_reconciliation_at = models.DateTimeField(null=True, blank=True)
    undone_sightings = models.PositiveIntegerField(
        default=0, help_text="listings that show it up although stopped"
    )

    class Meta:
        db_table = "conversation_boxes"
        verbose_name_plural = "boxes"
        ordering = ["-created_at", "-id"]
        permissions = [
            ("stop_box", "Can stop box"),
            ("forget_box", "Can close the row of a box that cannot be stopped"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "label"],
                condition=Q(stopped_at__isnull=True),
                name="conversation_boxes_active_label_index",
            ),
            models.CheckConstraint(
                condition=Q(state__in=BoxState.values), name="conversation_boxes_state_check"
            ),
            models.CheckConstraint(
                condition=Q(setup_status__in=SetupStatus.values), name="conversation_boxes_setup_status_check"
            ),
            models.CheckConstraint(
                condition=Q(stop_reason__isnull=True) | Q(stop_reason__in=StopReason.values),
                name="conversation_boxes_stop_reason_check",
            ),
            models.CheckConstraint(
                condition=Q(reconciliation_failures__gte=0)
                & Q(estimated_burn_rate_microusd__gte=0)
                & (Q(lifetime_seconds__isnull=True) | Q(lifetime_seconds__gte=0))
                & (Q(settled_cost_microusd__isnull=True) | Q(settled_cost_microusd__gte=0)),
                name="conversation_boxes_usage_check",
            ),
            models.CheckConstraint(condition=~Q(label=""), name="conversation_boxes_label_check"),
        ]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=Q(stopped_at__isnull=True) | Q(usage_settled_at__isnull=True),
                name="conversation_boxes_open_index",
            ),
            models.Index(
                fields=["conversation"],
                condition=Q(stopped_at__isnull=True),
                name="conversation_boxes_live_index",
            ),
            models.Index(
                fields=["next_provision_at"],
                condition=Q(next_provision_at__isnull=False),
                name="conversation_boxes_due_index",
            ),
            models.Index(
                fields=["next_settlement_at"],
                condition=Q(next_settlement_at__isnull=False),
                name="conversation_boxes_unset_index",
            ),
            models.Index(fields=["conversation", "-created_at"], name="conversation_boxes_list_index"),
            models.Index("conversation", LabelNumber("label"), name="conversation_boxes_number_idx"),
            models.Index(
                fields=["stopped_at"],
                condition=Q(stopped_at__isnull=False),
                name="conversation_boxes_month_index",
            ),
            models.Index(fields=["state", "-created_at"], name="conversation_boxes_state_index"),
            models.Index(
                fields=["stop_reason", "-created_at"],
                condition=Q(stop_reason__isnull=False),
                name="conversation_boxes_why_index",
            ),
            models.Index(
                fields=["label"], opclasses=["varchar_pattern_ops"], name="conversation_boxes_label_index"
            ),
        ]
        triggers = [
            Immutable(name="box_1_identity", fields=["conversation"], message="box identity is immutable"),
            WriteOnce(
                name="box_1_once", fields=["box_id", "create_key"], message="box identity is immutable"
            ),
            WriteOnce(
                name="box_2_stopped",
                fields=["stopped_at", "stop_reason", "lifetime_seconds"],
                message="stopped box is immutable",
            ),
            WriteOnce(
                name="box_3_settled",
                fields=["settled_cost_microusd", "usage_settled_at"],
                message="settled usage is immutable",
            ),
            pgtrigger.Trigger(
                name="box_4_stays_down",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(
                    old__stopped_at__isnull=False, old__state__df=pgtrigger.F("new__state")
                ),
                func="if new.state not in ('archiving', 'archived', 'error') then"
                " raise exception 'stopped box is immutable'; end if; return new;",
            ),
            pgtrigger.Protect(
                name="box_5_kept",
                operation=pgtrigger.Delete,
                condition=pgtrigger.Q(old__box_id__isnull=False) | pgtrigger.Q(old__stopped_at__isnull=False),
            ),
            pgtrigger.Trigger(
                name="box_6_frees_label",
                when=pgtrigger.After,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__stopped_at__isnull=True, new__stopped_at__isnull=False),
                func="update box_fanout_items set released_at = new.stopped_at"
                " where conversation_box_id = new.id and released_at is null; return null;",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.label = self.label or f"box-{(self.box_id or str(self.id))[:64]}"
        super().save(*args, **kwargs)

    @property
    def is_active(self) -> bool:
        """Whether the row holds quota: its box may exist and may cost."""
        return self.stopped_at is None

    @property
    def lease_end(self) -> LeaseEnd | None:
        """When the box is stopped at the latest, and by which rule; None once it is stopped."""
        if self.stopped_at is not None:
            return None
        conf = box_api()
        return lease_end(
            self.created_at,
            self.extended_until,
            ttl_seconds=conf.ttl_seconds,
            maximum_lifetime_seconds=conf.maximum_lifetime_seconds,
        )

    @property
    def expires_at(self) -> datetime | None:
        """The time of `lease_end`."""
        return self.lease_end.at if self.lease_end else None

    @property
    def expires_because(self) -> str | None:
        """The rule of `lease_end`: `ttl`, `extended` or `maximum_lifetime`."""
        return self.lease_end.because.value if self.lease_end else None

    @cached_property
    def idle_since(self) -> datetime | None:
        """Since when nothing was done in it; None while something runs and once it is stopped.

        Reads more than this row. Whoever shows many boxes has it set for all at once by `boxes.activity.attach`.
        """
        from boxes.activity import idle_since  # the row is below what is known of its activity

        return idle_since([self])[self.pk]
