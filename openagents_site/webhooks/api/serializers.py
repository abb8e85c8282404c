"""Bodies and answers of the API of webhooks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from base.api.serializers import StrictSerializer
from openagents_site.webhooks.models import Attempt, Delivery, Subscription
from openagents_site.webhooks.models.subscription import LONGEST_DESCRIPTION, LONGEST_URL
from openagents_site.webhooks.states import CHOICES, EVENT_TYPES, TEST, DeliveryState, DisabledReason

SHOWN_ATTEMPTS = 20
_WEBHOOK = ("id", "url", "description", "event_types", "all_owners", "enabled", "disabled_at", "disabled_reason",
            "failing_since", "created_at")  # fmt: skip


class WebhookSerializer(serializers.ModelSerializer[Subscription]):
    """A webhook. Its secret is in the answer that made it, and in no other."""

    url = serializers.SerializerMethodField(
        help_text="Others than its owner see no more than stands before its query."
    )
    event_types = serializers.ListField(child=serializers.ChoiceField(choices=CHOICES), read_only=True)
    enabled = serializers.BooleanField(source="is_enabled", read_only=True)
    disabled_reason = serializers.ChoiceField(
        choices=DisabledReason.choices, read_only=True, allow_null=True, help_text="Why it is off."
    )

    class Meta:
        model = Subscription
        fields: tuple[str, ...] = _WEBHOOK
        read_only_fields: tuple[str, ...] = _WEBHOOK

    def get_url(self, row: Subscription) -> str:
        """Receivers put secrets into the query: it is shown to who asks for a webhook of their own."""
        return row.url if self.context["request"].user.pk == row.owner_id else row.shown_url


class CreatedWebhookSerializer(WebhookSerializer):
    """A webhook with the secret by which its receiver knows our deliveries."""

    secret = serializers.CharField(read_only=True, help_text="`whsec_...`, shown now and never again.")

    class Meta(WebhookSerializer.Meta):
        fields = (*_WEBHOOK, "secret")
        read_only_fields = fields


class _WebhookBody(StrictSerializer):
    url = serializers.CharField(
        max_length=LONGEST_URL, help_text="Where deliveries are posted to: https, public."
    )
    description = serializers.CharField(
        required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION, help_text="For people."
    )
    event_types = serializers.ListField(
        child=serializers.ChoiceField(choices=CHOICES),
        required=False,
        max_length=len(CHOICES),
        help_text="Types, or all of a noun as `run.*`. Empty: everything.",
    )


class CreateWebhookSerializer(_WebhookBody):
    all = serializers.BooleanField(
        required=False, default=False, help_text="Everybody's objects, and leaks. Staff only."
    )


class ChangeWebhookSerializer(_WebhookBody):
    url = serializers.CharField(max_length=LONGEST_URL, required=False)
    enabled = serializers.BooleanField(
        required=False, help_text="Off: nothing is told, and what waits is cancelled. On: from now on."
    )


class WebhookAttemptSerializer(serializers.ModelSerializer[Attempt]):
    class Meta:
        model = Attempt
        fields = ("number", "started_at", "duration_ms", "status", "error")
        read_only_fields = fields


class WebhookDeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One event for one webhook, and how its tries went."""

    webhook = serializers.UUIDField(source="subscription_id", read_only=True)
    event_id = serializers.CharField(
        source="event.message_id", read_only=True, help_text="The header `webhook-id`."
    )
    event_type = serializers.ChoiceField(
        source="event.event_type", choices=(*EVENT_TYPES, TEST), read_only=True
    )
    object = serializers.UUIDField(source="event.object_id", read_only=True, help_text="What it happened to.")
    occurred_at = serializers.DateTimeField(source="event.occurred_at", read_only=True)
    state = serializers.ChoiceField(choices=DeliveryState.choices, read_only=True)
    attempt_log = serializers.SerializerMethodField(
        help_text=f"The last {SHOWN_ATTEMPTS} tries, newest first."
    )

    class Meta:
        model = Delivery
        fields = (
            "id",
            "webhook",
            "event_id",
            "event_type",
            "object",
            "occurred_at",
            "state",
            "attempts",
            "replays",
            "last_status",
            "last_error",
            "next_attempt_at",
            "created_at",
            "ended_at",
            "attempt_log",
        )
        read_only_fields = fields

    @extend_schema_field(WebhookAttemptSerializer(many=True))
    def get_attempt_log(self, delivery: Delivery) -> list[dict[str, Any]]:
        newest = list(delivery.attempt_log.all())[:SHOWN_ATTEMPTS]
        return list(WebhookAttemptSerializer(newest, many=True).data)
