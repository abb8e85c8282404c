"""What boxes cost."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.caller import user_of
from base.api.parameters import all_owners
from base.api.schema import ErrorAnswer
from boxes import usage
from boxes.models import Box
from boxes.usage import Group, Grouping
from conversations.services import conversation_of


class TotalsSerializer(serializers.Serializer[Any]):
    lifetime_seconds = serializers.IntegerField(help_text="Of boxes that ended.")
    settled_cost_microusd = serializers.IntegerField(help_text="What is known; see `unsettled_boxes`.")
    boxes = serializers.IntegerField()
    unsettled_boxes = serializers.IntegerField(
        help_text="Boxes whose cost is not known (yet): never counted as zero."
    )


class GroupSerializer(TotalsSerializer):
    key = serializers.CharField(allow_null=True)
    name = serializers.CharField()


class UsageSerializer(TotalsSerializer):
    groups = GroupSerializer(many=True)


class Usage(APIView):
    @extend_schema(
        summary="What boxes cost",
        description="Of the caller, or of one conversation of the caller. Staff see everybody's with `all=true`.",
        parameters=[
            OpenApiParameter("conversation", str),
            OpenApiParameter("group", str, enum=[grouping.value for grouping in Grouping]),
        ],
        responses={200: UsageSerializer, 404: ErrorAnswer, 422: ErrorAnswer},
    )
    def get(self, request: Request) -> Response:
        boxes = _boxes(request)
        grouping = request.query_params.get("group", "")
        if grouping and grouping not in set(Grouping):
            raise ValidationError({"group": ["is one of day, box, owner"]})
        groups = usage.grouped(boxes, Grouping(grouping)) if grouping else []
        answer = usage.totals(boxes) | {"groups": [_shown(group) for group in groups]}
        return Response(UsageSerializer(answer).data)


def _boxes(request: Request) -> QuerySet[Box]:
    conversation = request.query_params.get("conversation", "")
    if conversation:
        checked = serializers.UUIDField().run_validation(conversation)
        return Box.objects.filter(conversation=conversation_of(user_of(request), checked))
    if all_owners(request):
        return Box.objects.all()
    return Box.objects.filter(conversation__visitor__user=request.user.pk)


def _shown(group: Group) -> dict[str, Any]:
    return {"key": group.key, "name": group.label, **group.totals}
