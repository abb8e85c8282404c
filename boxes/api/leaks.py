"""Leaks: boxes at the provider that no row claims. For staff."""

from __future__ import annotations

from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import user_of
from base.api.filters import MomentFilter, TruthFilter
from base.api.pagination import NewestFirstPagination
from base.api.schema import refusals
from base.api.serializers import StrictSerializer
from base.api.views import ApiView, OwnedList
from boxes import leaks
from boxes.errors import PROVIDER_ERRORS
from boxes.models import ReconciliationEvent
from boxes.states import EventType, Resolution


class LeakSerializer(serializers.ModelSerializer[ReconciliationEvent]):
    class Meta:
        model = ReconciliationEvent
        fields = (
            "id",
            "provider_box_id",
            "event_type",
            "reason",
            "owned",
            "details",
            "observed_at",
            "last_seen_at",
            "handled_at",
            "resolution",
        )
        read_only_fields = fields


class AdoptSerializer(StrictSerializer):
    conversation = serializers.UUIDField(help_text="Whose box it becomes.")
    label = serializers.CharField(  # type: ignore[assignment]  # a field of the body
        required=False, allow_null=True, default=None
    )


class LeakFilter(django_filters.FilterSet):
    owned = TruthFilter()
    handled = TruthFilter(method="filter_handled", label="Whether it was handled.")
    resolution = django_filters.ChoiceFilter(choices=Resolution.choices)
    created_after = MomentFilter(field_name="observed_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="observed_at", lookup_expr="lt")

    def filter_handled(
        self, events: QuerySet[ReconciliationEvent], name: str, value: bool
    ) -> QuerySet[ReconciliationEvent]:
        return events.filter(handled_at__isnull=not value)


class LeakPagination(NewestFirstPagination):
    ordering = ("-observed_at", "-id")


class Leaks(OwnedList):
    """Leaks, newest sighting first; handled ones too."""

    staff_only = True
    queryset = ReconciliationEvent.objects.none()
    serializer_class = LeakSerializer
    pagination_class = LeakPagination
    filterset_class = LeakFilter

    def rows(self) -> QuerySet[ReconciliationEvent]:
        return ReconciliationEvent.objects.filter(event_type=EventType.LEAK)


class StopLeak(ApiView):
    lookup_errors = ("leak_not_found",)
    staff_only = True
    staff_permission = "boxes.handle_reconciliationevent"

    @extend_schema(
        summary="Stop a leaked box",
        extensions=refusals("leak_handled", "leak_busy", *PROVIDER_ERRORS),
        request=None,
        responses={200: LeakSerializer},
    )
    def post(self, request: Request, leak_id: UUID) -> Response:
        return Response(LeakSerializer(leaks.stop_leak(leaks.find_leak(leak_id), by=user_of(request))).data)


class AdoptLeak(ApiView):
    lookup_errors = ("leak_not_found",)
    staff_only = True
    staff_permission = "boxes.handle_reconciliationevent"

    @extend_schema(
        summary="Adopt a leaked box into a conversation",
        extensions=refusals(
            "leak_handled",
            "leak_busy",
            "conversation_not_found",
            "box_label_taken",
            "invalid_box_label",
            "box_request_failed",
        ),
        request=AdoptSerializer,
        responses={200: LeakSerializer},
    )
    def post(self, request: Request, leak_id: UUID) -> Response:
        wanted = AdoptSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        adopted = leaks.adopt_leak(
            leaks.find_leak(leak_id),
            wanted.validated_data["conversation"],
            by=user_of(request),
            label=wanted.validated_data["label"],
        )
        return Response(LeakSerializer(adopted).data)


class DismissLeak(ApiView):
    lookup_errors = ("leak_not_found",)
    staff_only = True
    staff_permission = "boxes.handle_reconciliationevent"

    @extend_schema(
        summary="Let a leaked box be",
        extensions=refusals("leak_handled", "leak_busy"),
        request=None,
        responses={200: LeakSerializer},
    )
    def post(self, request: Request, leak_id: UUID) -> Response:
        return Response(
            LeakSerializer(leaks.dismiss_leak(leaks.find_leak(leak_id), by=user_of(request))).data
        )
