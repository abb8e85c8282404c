"""Who wants to be told what, and where."""

from __future__ import annotations

import uuid

import pghistory
import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from openagents_site.webhooks.states import DisabledReason

LONGEST_URL = 2000
LONGEST_DESCRIPTION = 200
WATCHED = ["event_types", "all_owners", "disabled_at", "disabled_reason"]


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pgtrigger.AnyChange(*WATCHED)),
    pghistory.DeleteEvent(),
    fields=["owner", *WATCHED],
    model_name="SubscriptionHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "webhook_subscriptions_history"},
)
class Subscription(models.Model):
    """One webhook. Its secret is sealed: whoever reads the table cannot sign."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="webhooks")
    url = models.CharField(
        max_length=LONGEST_URL, help_text="where deliveries are posted to; may hold a secret"
    )
    description = models.CharField(max_length=LONGEST_DESCRIPTION, blank=True, default="")
    event_types = ArrayField(
        models.CharField(max_length=40),
        default=list,
        blank=True,
        help_text="types, or all of a noun as run.*; empty: everything",
    )
    all_owners = models.BooleanField(default=False, help_text="everybody's objects and leaks; staff alone")
    sealed_secret = models.BinaryField(editable=False)
    sealed_previous_secret = models.BinaryField(null=True, editable=False)
    previous_until = models.DateTimeField(
        null=True, blank=True, help_text="until then deliveries carry a signature of the secret before, too"
    )
    created_at = models.DateTimeField(db_default=Now())
    failing_since = models.DateTimeField(
        null=True, blank=True, help_text="since when nothing that was tried was taken"
    )
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=7, choices=DisabledReason.choices, null=True, blank=True)

    class Meta:
        db_table = "webhook_subscriptions"
        verbose_name = "webhook"
        ordering = ["-created_at", "-id"]
        permissions = [("switch_subscription", "Can switch webhooks on and off")]
        constraints = [
            models.CheckConstraint(
                condition=Q(disabled_at__isnull=True, disabled_reason__isnull=True)
                | Q(disabled_at__isnull=False, disabled_reason__in=DisabledReason.values),
                name="webhook_subscriptions_disabled_check",
            )
        ]
        indexes = [
            models.Index(
                fields=["owner"], condition=Q(disabled_at__isnull=True), name="webhook_subscriptions_on_index"
            ),
            models.Index(fields=["owner", "-created_at", "-id"], name="webhook_subscriptions_list_idx"),
        ]

    def __str__(self) -> str:
        return self.description or str(self.id)[:8]

    @property
    def shown_url(self) -> str:
        """What of the address others than its owner may see."""
        return self.url.partition("?")[0]

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None
