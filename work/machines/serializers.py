"""Bodies and answers of the machines' API. Tokens, digests and raw probes are in none of them, but for the one answer that
hands a token over."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from base.api.serializers import StrictSerializer
from base.clock import database_now
from work.machines.presence import agents_of, is_online
from work.models import Machine
from work.states import MachineStatus, MachineTier, PairingStatus


class AgentSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()


class MachineListSerializer(serializers.ListSerializer[Any]):
    def to_representation(self, data: Any) -> Any:
        self.child.now = database_now()  # type: ignore[union-attr]  # one look at the clock for all
        return super().to_representation(data)


class MachineSerializer(serializers.ModelSerializer[Machine]):
    """A machine as its owner sees it."""

    tier = serializers.ChoiceField(choices=MachineTier.choices, read_only=True)
    status = serializers.ChoiceField(choices=MachineStatus.choices, read_only=True)
    roots = serializers.ListField(child=serializers.CharField(), read_only=True)
    online = serializers.SerializerMethodField(help_text="Whether it was heard of in the last 45 seconds.")
    now: datetime | None = None
    agents = serializers.SerializerMethodField(help_text="What it found when it last looked.")

    class Meta:
        model = Machine
        list_serializer_class = MachineListSerializer
        fields = (
            "id",
            "name",
            "tier",
            "platform",
            "agent_version",
            "roots",
            "status",
            "online",
            "agents",
            "last_seen_at",
            "token_expires_at",
            "scoped_forge_credentials_enabled",
            "created_at",
            "revoked_at",
        )
        read_only_fields = fields

    def get_online(self, machine: Machine) -> bool:
        return is_online(machine, self.now or database_now())

    @extend_schema_field(AgentSerializer(many=True))
    def get_agents(self, machine: Machine) -> list[dict[str, str]]:
        return agents_of(machine)


class ChangeMachineSerializer(StrictSerializer):
    name = serializers.CharField(required=False)
    tier = serializers.ChoiceField(
        choices=MachineTier.choices, required=False, help_text="Only one with less authority."
    )
    scoped_forge_credentials_enabled = serializers.BooleanField(required=False)


class StartPairingSerializer(StrictSerializer):
    name = serializers.CharField(help_text="1 to 80 characters.")
    tier = serializers.ChoiceField(choices=MachineTier.choices)
    platform = serializers.CharField(required=False, help_text="At most 40 characters.")
    agent_version = serializers.CharField(required=False, help_text="At most 40 characters.")
    roots = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Folders, at most 16 of at most 512 bytes."
    )


class ApprovePairingSerializer(StrictSerializer):
    code = serializers.CharField(help_text="As the computer shows it; case and separators do not count.")


class StartedPairingSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    code = serializers.CharField(help_text="For its owner to type in.")
    poll_secret = serializers.CharField(help_text="For the header X-Pairing-Secret.")
    status = serializers.ChoiceField(choices=PairingStatus.choices)
    expires_at = serializers.DateTimeField()
    approve_url = serializers.CharField(help_text="Where its owner types the code in.")


class PairingSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(
        choices=PairingStatus.choices, help_text="Once it is approved, the token is in one answer."
    )
    token = serializers.CharField(required=False)
    machine = MachineSerializer(required=False)
