"""What lists of boxes can be filtered by."""

from __future__ import annotations

import django_filters
from django.db.models import QuerySet

from base.api.filters import MomentFilter, TruthFilter
from boxes.models import Box, FanoutRequest
from boxes.states import BoxState, FanoutState, StopReason


class BoxFilter(django_filters.FilterSet):
    conversation = django_filters.UUIDFilter()
    state = django_filters.ChoiceFilter(choices=BoxState.choices)
    stop_reason = django_filters.ChoiceFilter(choices=StopReason.choices)
    label = django_filters.CharFilter()
    active = TruthFilter(method="filter_active", label="Whether it holds quota.")
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Box
        fields: tuple[str, ...] = ()

    def filter_active(self, boxes: QuerySet[Box], name: str, value: bool) -> QuerySet[Box]:
        return boxes.filter(stopped_at__isnull=value)


class FanoutFilter(django_filters.FilterSet):
    conversation = django_filters.UUIDFilter()
    state = django_filters.ChoiceFilter(choices=FanoutState.choices)
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = FanoutRequest
        fields: tuple[str, ...] = ()
