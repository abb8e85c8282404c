"""What boxes cost."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import user_of
from base.api.filters import MomentFilter, refuse_empty
from base.api.parameters import all_owners, id_named
from base.api.views import ApiView
from boxes import usage
from boxes.models import Box
from boxes.usage import Group, Grouping
from conversations.services import conversation_of

MOST_GROUPS = 1000


class UsageFilter(django_filters.FilterSet):
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")


class TotalsSerializer(serializers.Serializer[Any]):
    lifetime_seconds = serializers.IntegerField(help_text="Of boxes that ended.")
    settled_cost_microusd = serializers.IntegerField(help_text="What is known; see `unsettled_boxes`.")
    boxes = serializers.IntegerField()
    unsettled_boxes = serializers.IntegerField(
        help_text="Boxes whose cost is not in the sum, and not counted as zero: those that still run, and stopped ones "
        "whose cost is not known (yet)."
    )


class GroupSerializer(TotalsSerializer):
    key = serializers.CharField(allow_null=True)
    name = serializers.CharField()


class UsageSerializer(TotalsSerializer):
    groups = GroupSerializer(many=True)
    groups_truncated = serializers.BooleanField(help_text=f"There are more than {MOST_GROUPS} groups.")


class Usage(ApiView):
    lookup_errors = ("conversation_not_found",)

    @extend_schema(
        summary="What boxes cost",
        description="Of the caller, or of one conversation of the caller. Staff see everybody's with `all=true`.",
        parameters=[
            OpenApiParameter("conversation", UUID),
            OpenApiParameter("group", str, enum=[grouping.value for grouping in Grouping]),
            OpenApiParameter("created_after", OpenApiTypes.DATETIME),
            OpenApiParameter("created_before", OpenApiTypes.DATETIME),
        ],
        responses={200: UsageSerializer},
    )
    def get(self, request: Request) -> Response:
        boxes = _within(request, _boxes(request))
        grouping = request.query_params.get("group")
        if grouping is not None and grouping not in set(Grouping):
            raise ValidationError({"group": ["is one of day, box, owner"]})
        groups = usage.grouped(boxes, Grouping(grouping), limit=MOST_GROUPS + 1) if grouping else []
        answer = {
            **usage.totals(boxes),
            "groups": [_shown(group) for group in groups[:MOST_GROUPS]],
            "groups_truncated": len(groups) > MOST_GROUPS,
        }
        return Response(UsageSerializer(answer).data)


def _boxes(request: Request) -> QuerySet[Box]:
    conversation = id_named(request, "conversation")
    if conversation is not None:
        if all_owners(request):
            return Box.objects.filter(conversation_id=conversation)
        return Box.objects.filter(conversation=conversation_of(user_of(request), conversation))
    if all_owners(request):
        return Box.objects.all()
    return Box.objects.filter(conversation__visitor__user=request.user.pk)


def _within(request: Request, boxes: QuerySet[Box]) -> QuerySet[Box]:
    refuse_empty(request, UsageFilter.base_filters)
    found = UsageFilter(request.query_params, queryset=boxes)
    if not found.is_valid():
        raise ValidationError(found.errors)
    filtered: QuerySet[Box] = found.qs
    return filtered


def _shown(group: Group) -> dict[str, Any]:
    return {"key": group.key, "name": group.label, **group.totals}
