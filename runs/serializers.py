"""Bodies and answers of the runs' API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from base.api.serializers import StrictSerializer
from runs.models import Run
from runs.states import RunState

FAILURE_REASON = (
    "Null while it runs and where the exit status says it all. Else one of `dispatch_<code>` (the box cannot hold a run),"
    " `box_unauthorized`, `box_billing_required`, `box_provider_refused`, `box_not_configured`, `credential_unavailable`,"
    " `out_of_memory`, `run_duration_exceeded`, `dispatch_ambiguous`, `run_directory_missing`,"
    " `process_missing_without_exit_sentinel`, `box_stopped`, `box_not_found`, `box_gone`, `machine_not_running`."
)


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run as its ledger row says, without its output."""

    box = serializers.UUIDField(source="conversation_box_id", read_only=True)
    box_id = serializers.CharField(source="conversation_box.box_id", read_only=True, allow_null=True)
    state = serializers.ChoiceField(choices=RunState.choices, read_only=True)
    is_terminal = serializers.BooleanField(read_only=True)
    failure_reason = serializers.CharField(read_only=True, allow_null=True, help_text=FAILURE_REASON)

    class Meta:
        model = Run
        fields = (
            "id",
            "box",
            "box_id",
            "conversation",
            "command",
            "idempotency_key",
            "state",
            "is_terminal",
            "exit_status",
            "exit_signal",
            "timed_out",
            "failure_reason",
            "kill_confirmed",
            "dropped_bytes",
            "requesting_principal",
            "output_base_offset",
            "last_output_offset",
            "admitted_at",
            "dispatched_at",
            "started_at",
            "finished_at",
            "deadline_at",
            "cancellation_requested_at",
            "cancellation_effective_at",
        )
        read_only_fields = fields


class CreateRunSerializer(StrictSerializer):
    box = serializers.CharField(help_text="Our id, the provider's id, or the label of an active box.")
    command = serializers.CharField(
        trim_whitespace=False, allow_blank=True, help_text="Shell text, 1 to 8,000 bytes."
    )
    idempotency_key = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Required, here or as the header `Idempotency-Key`.",
    )


class OutputSerializer(serializers.Serializer[Any]):
    """A piece of output. Offsets count the bytes that the command wrote, before anything was struck out."""

    output = serializers.CharField()
    offset = serializers.IntegerField(help_text="As asked.")
    next_offset = serializers.IntegerField(help_text="Ask from here next.")
    output_base_offset = serializers.IntegerField(help_text="Where what is kept begins.")
    truncated = serializers.BooleanField(help_text="Whether something before what is kept was asked for.")


class LogSerializer(OutputSerializer):
    dropped_bytes = serializers.IntegerField(help_text="What a ceiling kept out of the log.")
