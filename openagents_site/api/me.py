"""`/me`: who calls, with what, under which limits."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import token_of, user_of
from accounts.scopes import Scope
from accounts.serializers import UserSerializer
from accounts.services import scopes_of
from base.api.views import ApiView
from boxes.conf import box_api
from conversations.services import ensure_conversation

LIMITS = (
    "default_maximum_active_boxes",
    "maximum_active_boxes",
    "maximum_active_boxes_per_owner",
    "maximum_active_boxes_global",
    "ttl_seconds",
    "maximum_lifetime_seconds",
    "idle_timeout_seconds",
    "run_max_duration_seconds",
)


class MeSerializer(serializers.Serializer[Any]):
    user = UserSerializer()
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices))
    conversation = serializers.UUIDField()
    limits = serializers.DictField(
        child=serializers.IntegerField(), help_text="The limits in force, by setting."
    )


class Me(ApiView):
    takes_all = False

    @extend_schema(summary="Who calls, with what, under which limits", responses={200: MeSerializer})
    def get(self, request: Request) -> Response:
        limits = box_api()
        answer = {
            "user": request.user,
            "scopes": [scope for scope in Scope.values if scope in scopes_of(token_of(request))],
            "conversation": ensure_conversation(user_of(request)).id,
            "limits": {name: getattr(limits, name) for name in LIMITS},
        }
        return Response(MeSerializer(answer).data)
