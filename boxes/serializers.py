"""Bodies and answers of the boxes' API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from base.api.serializers import StrictSerializer
from boxes.lifetime import EndRule
from boxes.models import Box
from boxes.states import BoxState, SetupStatus

LONGEST_WAIT_SECONDS = 25


class BoxSerializer(serializers.ModelSerializer[Box]):
    """A box as its ledger row says; reading never asks the provider."""

    state = serializers.ChoiceField(choices=BoxState.choices, read_only=True)
    setup_status = serializers.ChoiceField(choices=SetupStatus.choices, read_only=True)
    expires_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="When it will be stopped at the latest; null once it was."
    )
    expires_because = serializers.ChoiceField(
        choices=[rule.value for rule in EndRule],
        read_only=True,
        allow_null=True,
        help_text="The rule that set `expires_at`.",
    )
    idle_since = serializers.DateTimeField(
        read_only=True,
        allow_null=True,
        help_text="Since when nothing was done in it; null while something runs.",
    )

    class Meta:
        model = Box
        fields = (
            "id",
            "box_id",
            "conversation",
            "label",
            "state",
            "setup_status",
            "created_at",
            "stopped_at",
            "stop_reason",
            "stop_requested_at",
            "lifetime_seconds",
            "settled_cost_microusd",
            "usage_settled_at",
            "last_reconciled_at",
            "reconciliation_failures",
            "reconciliation_error",
            "next_reconciliation_at",
            "expires_at",
            "expires_because",
            "idle_since",
        )
        read_only_fields = fields


class CreateBoxSerializer(StrictSerializer):
    conversation = serializers.UUIDField(required=False, help_text="Default: the caller's own.")
    label = serializers.CharField(  # type: ignore[assignment]  # a field of the body, not the serializer's label
        required=False, allow_null=True, default=None, help_text="Default: the next box-N."
    )
    budgeted = serializers.BooleanField(
        required=False, default=False, help_text="Raises the conversation's limit."
    )
    wait = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=LONGEST_WAIT_SECONDS,
        help_text="Seconds to wait until the box is ready; the answer comes earlier if it is, and as it is if not.",
    )


class ExtendBoxSerializer(StrictSerializer):
    seconds = serializers.IntegerField(min_value=1, help_text="How much longer than now planned.")


class CommandSerializer(StrictSerializer):
    command = serializers.CharField(trim_whitespace=False, allow_blank=True)
    timeout_seconds = serializers.IntegerField(required=False, default=60)


class CommandResultSerializer(serializers.Serializer[Any]):
    exit_status = serializers.IntegerField(allow_null=True)
    stdout = serializers.CharField()
    stderr = serializers.CharField()
    timed_out = serializers.BooleanField()
    truncated = serializers.BooleanField()
