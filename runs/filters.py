"""What lists of runs can be filtered by."""

from __future__ import annotations

import django_filters

from base.api.filters import MomentFilter
from runs.models import Run
from runs.states import RunState


class RunFilter(django_filters.FilterSet):
    box = django_filters.UUIDFilter(field_name="conversation_box_id")
    conversation = django_filters.UUIDFilter()
    state = django_filters.ChoiceFilter(choices=RunState.choices)
    created_after = MomentFilter(field_name="admitted_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="admitted_at", lookup_expr="lt")

    class Meta:
        model = Run
        fields: tuple[str, ...] = ()
