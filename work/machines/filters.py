"""What lists of machines can be filtered by."""

from __future__ import annotations

import django_filters

from base.api.filters import MomentFilter
from work.models import Machine
from work.states import MachineStatus, MachineTier


class MachineFilter(django_filters.FilterSet):
    status = django_filters.ChoiceFilter(choices=MachineStatus.choices)
    tier = django_filters.ChoiceFilter(choices=MachineTier.choices)
    name = django_filters.CharFilter()
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Machine
        fields: tuple[str, ...] = ()
