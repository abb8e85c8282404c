"""`/fleet`: a conversation's boxes with what goes on in them, and what waits for a place."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import user_of
from base.api.parameters import all_owners, id_named
from base.api.views import ApiView
from boxes.states import BoxState, QueueReason, SetupStatus, StopReason
from conversations.models import Conversation
from conversations.services import ConversationNotFound, conversation_of
from openagents_site.fleet import fleet_of
from runs.serializers import FAILURE_REASON
from runs.states import RunState


class FleetRunSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=RunState.choices)
    is_terminal = serializers.BooleanField()
    exit_status = serializers.IntegerField(allow_null=True)
    failure_reason = serializers.CharField(allow_null=True, help_text=FAILURE_REASON)
    output = serializers.CharField(help_text="Its end, redacted.")


class FleetBoxSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    box_id = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]  # a field of the answer
    state = serializers.ChoiceField(choices=BoxState.choices)
    setup_status = serializers.ChoiceField(choices=SetupStatus.choices)
    age_seconds = serializers.IntegerField(help_text="From its creation until it was stopped, or until now.")
    stopped_at = serializers.DateTimeField(allow_null=True)
    stop_reason = serializers.ChoiceField(choices=StopReason.choices, allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    idle_since = serializers.DateTimeField(allow_null=True)
    run = FleetRunSerializer(allow_null=True, help_text="The newest one.")


class QueuedBoxSerializer(serializers.Serializer[Any]):
    plan = serializers.UUIDField()
    position = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]
    queue_reason = serializers.ChoiceField(choices=QueueReason.choices, allow_null=True)
    queued_at = serializers.DateTimeField(allow_null=True)


class FleetSerializer(serializers.Serializer[Any]):
    conversation = serializers.UUIDField()
    admitted_count = serializers.IntegerField(help_text="Active boxes.")
    effective_cap = serializers.IntegerField(help_text="Active boxes that the conversation may have.")
    effective_limits = serializers.DictField(help_text="Those of the newest plan.")
    maximum_boxes = serializers.IntegerField(help_text="How many boxes are shown at most.")
    boxes = FleetBoxSerializer(many=True, help_text="Active ones first, then the oldest.")
    queued = QueuedBoxSerializer(many=True)
    queued_truncated = serializers.BooleanField()


class FleetView(ApiView):
    lookup_errors = ("conversation_not_found",)

    @extend_schema(
        summary="A conversation's boxes and what goes on in them",
        description="Of the caller's own conversation by default. Staff may look at any with `all=true`.",
        parameters=[OpenApiParameter("conversation", UUID)],
        responses={200: FleetSerializer},
    )
    def get(self, request: Request) -> Response:
        return Response(FleetSerializer(asdict(fleet_of(_conversation_id(request)))).data)


def _conversation_id(request: Request) -> UUID:
    wanted = id_named(request, "conversation")
    if wanted is None or not all_owners(request):
        return conversation_of(user_of(request), wanted).id
    if not Conversation.objects.filter(pk=wanted).exists():
        raise ConversationNotFound
    return wanted
