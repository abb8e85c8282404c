"""Bodies and answers of the API of jobs and incidents."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from base.api.serializers import StrictSerializer
from work.delegations import describe
from work.models import Incident, Job, JobStep
from work.states import IncidentStatus, JobKind, JobStatus, StepStatus, Surface


class DelegationFactsSerializer(serializers.Serializer[Any]):
    """What a delegation is, and how it goes on its machine."""

    agent_id = serializers.CharField()
    machine_name = serializers.CharField()
    cwd = serializers.CharField()
    prompt = serializers.CharField()
    timeout_ms = serializers.IntegerField()
    on_machine = serializers.DictField(allow_null=True, help_text="Null before the machine was offered it.")


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job as its ledger row says. `report` is the text so far until it has ended."""

    kind = serializers.ChoiceField(choices=JobKind.choices, read_only=True)
    status = serializers.ChoiceField(choices=JobStatus.choices, read_only=True)
    surface = serializers.ChoiceField(choices=Surface.choices, read_only=True)
    is_terminal = serializers.BooleanField(read_only=True)
    scopes = serializers.SerializerMethodField(
        help_text="What deep work may do; null: everything that its owner may."
    )
    delegation = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = (
            "id",
            "kind",
            "status",
            "is_terminal",
            "goal",
            "context_hint",
            "surface",
            "conversation",
            "machine",
            "delegation",
            "report",
            "error_code",
            "report_message",
            "model_id",
            "scopes",
            "tool_call_count",
            "continuation_count",
            "usage",
            "token_budget",
            "cost_budget_microusd",
            "keep_boxes",
            "created_at",
            "started_at",
            "completed_at",
            "cancel_requested_at",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField(), allow_null=True))
    def get_scopes(self, job: Job) -> list[str] | None:
        snapshot = None if job.is_delegation else job.authority_snapshot
        return list(snapshot.get("scopes", ())) if isinstance(snapshot, dict) else None

    @extend_schema_field(DelegationFactsSerializer(allow_null=True))
    def get_delegation(self, job: Job) -> dict[str, Any] | None:
        if not job.is_delegation or not isinstance(job.delegation, dict):
            return None
        shown = ("agent_id", "machine_name", "cwd", "prompt", "timeout_ms")
        return {**{name: job.delegation.get(name) for name in shown}, "on_machine": describe(job)}


class JobStepSerializer(serializers.ModelSerializer[JobStep]):
    """One tool call and what came of it."""

    status = serializers.ChoiceField(choices=StepStatus.choices, read_only=True)

    class Meta:
        model = JobStep
        fields = (
            "id",
            "sequence",
            "provider_call_id",
            "tool_name",
            "tool_version",
            "arguments",
            "argument_digest",
            "status",
            "outcome_digest",
            "result",
            "error",
            "executor_id",
            "executor_disclosure",
            "target_receipt_refs",
            "requested_at",
            "started_at",
            "completed_at",
        )
        read_only_fields = fields


class CreateJobSerializer(StrictSerializer):
    """Deep work has a goal; a delegation a machine, an agent, a prompt and a folder. What does not belong to the kind is refused."""

    kind = serializers.ChoiceField(choices=JobKind.choices, required=False, default=JobKind.DEEP_WORK)
    conversation = serializers.UUIDField(required=False, help_text="Default: the caller's own.")
    surface = serializers.ChoiceField(choices=Surface.choices, required=False, default=Surface.TEXT)
    goal = serializers.CharField(required=False, allow_blank=True, help_text="1 to 2,000 bytes.")
    context_hint = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="At most 2,000 bytes."
    )
    token_budget = serializers.IntegerField(required=False, allow_null=True)
    cost_budget_microusd = serializers.IntegerField(required=False, allow_null=True)
    keep_boxes = serializers.BooleanField(
        required=False, help_text="Whether the boxes that it makes outlive it."
    )
    machine = serializers.UUIDField(required=False)
    agent_id = serializers.CharField(required=False, allow_blank=True)
    prompt = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text="1 to 8,000 bytes."
    )
    cwd = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    timeout_ms = serializers.IntegerField(required=False, allow_null=True, help_text="At most 3,600,000.")

    ONLY_DEEP_WORK = ("token_budget", "cost_budget_microusd", "keep_boxes")
    ONLY_DELEGATION = ("machine", "agent_id", "prompt", "cwd", "timeout_ms")
    NEEDED = {JobKind.DEEP_WORK: ("goal",), JobKind.DELEGATION: ("machine", "agent_id", "prompt", "cwd")}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kind = JobKind(attrs["kind"])
        foreign = self.ONLY_DELEGATION if kind == JobKind.DEEP_WORK else self.ONLY_DEEP_WORK
        problems = {name: [f"is not for {kind.value}"] for name in foreign if name in attrs}
        problems |= {name: ["is required"] for name in self.NEEDED[kind] if name not in attrs}
        if problems:
            raise serializers.ValidationError(problems)
        return attrs


class IncidentSerializer(serializers.ModelSerializer[Incident]):
    """Something that went wrong, without secrets."""

    status = serializers.ChoiceField(choices=IncidentStatus.choices, read_only=True)

    class Meta:
        model = Incident
        fields = (
            "id",
            "surface",
            "origin",
            "code",
            "severity",
            "summary",
            "correlation_ref",
            "context",
            "conversation",
            "status",
            "receipt_ref",
            "fixer_job",
            "created_at",
        )
        read_only_fields = fields


class IncidentDetailSerializer(IncidentSerializer):
    recurrence = serializers.IntegerField(
        read_only=True, help_text="Equal codes of its owner in the 24 hours before it, itself included."
    )

    class Meta(IncidentSerializer.Meta):
        fields = (*IncidentSerializer.Meta.fields, "recurrence")  # type: ignore[assignment]
        read_only_fields = fields  # type: ignore[assignment]


class ChangeIncidentSerializer(StrictSerializer):
    status = serializers.ChoiceField(choices=IncidentStatus.choices, required=False)
    receipt_ref = serializers.CharField(
        required=False, allow_null=True, max_length=256, help_text="What mended it: a commit, a ticket."
    )
