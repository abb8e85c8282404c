"""Several boxes at once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from base.api.parameters import all_owners
from base.api.schema import refusals
from base.api.serializers import StrictSerializer
from base.api.views import ApiView, OwnedList
from boxes import fanout
from boxes.api.boxes import CREATES_PER_MINUTE
from boxes.errors import BoxNotFound
from boxes.filters import FanoutFilter
from boxes.models import FanoutItem, FanoutRequest
from boxes.states import ItemState, QueueReason
from conversations.listing import by_conversation
from conversations.services import conversation_of


class ItemSerializer(serializers.ModelSerializer[FanoutItem]):
    box_id = serializers.CharField(source="box.box_id", read_only=True, allow_null=True, default=None)
    box = serializers.UUIDField(source="box_id", read_only=True, allow_null=True)
    queue_reason = serializers.ChoiceField(choices=QueueReason.choices, read_only=True, allow_null=True)

    class Meta:
        model = FanoutItem
        fields = (
            "position",
            "label",
            "state",
            "box",
            "box_id",
            "queue_reason",
            "estimated_burn_rate_microusd",
            "admitted_at",
            "queued_at",
        )
        read_only_fields = fields


class FanoutSerializer(serializers.ModelSerializer[FanoutRequest]):
    admitted = serializers.SerializerMethodField()
    queued = serializers.SerializerMethodField()

    class Meta:
        model = FanoutRequest
        fields = (
            "id",
            "conversation",
            "requested_count",
            "state",
            "admitted",
            "queued",
            "effective_limits",
            "budgeted",
            "created_at",
            "updated_at",
            "cancelled_at",
        )
        read_only_fields = fields

    @extend_schema_field(ItemSerializer(many=True))
    def get_admitted(self, request: FanoutRequest) -> list[dict[str, Any]]:
        return _items(request, ItemState.ADMITTED)

    @extend_schema_field(ItemSerializer(many=True))
    def get_queued(self, request: FanoutRequest) -> list[dict[str, Any]]:
        return _items(request, ItemState.QUEUED)


def _items(request: FanoutRequest, state: ItemState) -> list[dict[str, Any]]:
    items = [item for item in request.items.all() if item.state == state]
    return list(ItemSerializer(items, many=True).data)


class CreateFanoutSerializer(StrictSerializer):
    conversation = serializers.UUIDField(required=False, help_text="Default: the caller's own.")
    count = serializers.IntegerField(help_text="1 to 100.")
    labels = serializers.ListField(
        child=serializers.CharField(allow_blank=True), required=False, allow_null=True, default=None
    )
    budgeted = serializers.BooleanField(
        required=False, default=False, help_text="Raises the conversation's limit."
    )


def plans(request: Request) -> QuerySet[FanoutRequest]:
    """The plans that the caller may see, with their items."""
    found = FanoutRequest.objects.prefetch_related("items__box")
    return found if all_owners(request) else found.filter(conversation__visitor__user=request.user.pk)


def find_plan(request: Request, plan_id: UUID) -> FanoutRequest:
    found = plans(request).filter(pk=plan_id).first()
    if found is None:
        raise BoxNotFound("fanout_not_found")
    return found


class Fanouts(OwnedList):
    """The caller's plans, newest first."""

    queryset = FanoutRequest.objects.none()
    serializer_class = FanoutSerializer
    filterset_class = FanoutFilter

    def rows(self) -> QuerySet[FanoutRequest]:
        return by_conversation(self.request, plans(self.request))

    @extend_schema(
        summary="Plan several boxes",
        parameters=[KEY],
        extensions=refusals(
            "invalid_box_count",
            "invalid_box_labels",
            "box_label_taken",
            "conversation_not_found",
            "box_api_rate_limited",
            *KEY_ERRORS,
        ),
        description="What may be made now is admitted; the rest waits in a fair queue for places.",
        request=CreateFanoutSerializer,
        responses={202: FanoutSerializer},
    )
    def post(self, request: Request) -> Response:
        rates.count(f"user:{request.user.pk}", "box_create", CREATES_PER_MINUTE, code="box_api_rate_limited")
        wanted = CreateFanoutSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        return made_once(request, "POST /fanouts", lambda _: _plan(request, wanted.validated_data))


def _plan(request: Request, wanted: dict[str, Any]) -> Answer:
    conversation = conversation_of(user_of(request), wanted.get("conversation"))
    principal = {"type": "user", "id": str(request.user.pk)}
    plan = fanout.admit(
        conversation.id, principal, wanted["count"], labels=wanted["labels"], budgeted=wanted["budgeted"]
    )
    return Answer(202, dict(FanoutSerializer(find_plan(request, plan.pk)).data))


class FanoutDetail(ApiView):
    lookup_errors = ("fanout_not_found",)

    @extend_schema(summary="One plan", responses={200: FanoutSerializer})
    def get(self, request: Request, plan_id: UUID) -> Response:
        return Response(FanoutSerializer(find_plan(request, plan_id)).data)


class CancelFanout(ApiView):
    lookup_errors = ("fanout_not_found",)

    @extend_schema(
        summary="End what of a plan still waits",
        request=None,
        responses={200: FanoutSerializer},
    )
    def post(self, request: Request, plan_id: UUID) -> Response:
        fanout.cancel(find_plan(request, plan_id))
        return Response(FanoutSerializer(find_plan(request, plan_id)).data)
