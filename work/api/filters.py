"""What lists of jobs and incidents can be filtered by."""

from __future__ import annotations

import django_filters

from base.api.filters import MomentFilter
from work.models import Incident, Job
from work.states import IncidentStatus, IncidentSurface, JobKind, JobStatus, Severity


class JobFilter(django_filters.FilterSet):
    kind = django_filters.ChoiceFilter(choices=JobKind.choices)
    status = django_filters.ChoiceFilter(choices=JobStatus.choices)
    conversation = django_filters.UUIDFilter()
    machine = django_filters.UUIDFilter()
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Job
        fields: tuple[str, ...] = ()


class IncidentFilter(django_filters.FilterSet):
    code = django_filters.CharFilter()
    severity = django_filters.ChoiceFilter(choices=Severity.choices)
    surface = django_filters.ChoiceFilter(choices=IncidentSurface.choices)
    status = django_filters.ChoiceFilter(choices=IncidentStatus.choices)
    correlation_ref = django_filters.CharFilter()
    conversation = django_filters.UUIDFilter()
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Incident
        fields: tuple[str, ...] = ()
