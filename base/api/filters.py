"""What several apps' lists can be filtered by."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.fields import IsoDateTimeField
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from base.api.parameters import truth


class FilterBackend(DjangoFilterBackend):
    """Filters by the fields of a view's `filterset_class`; refuses an empty value, which would else filter nothing."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filters = getattr(view, "filterset_class", None)
        refuse_empty(request, filters.base_filters if filters else ())
        found: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return found


def refuse_empty(request: Request, names: Iterable[str]) -> None:
    """Raises ValidationError for query parameters that are there and empty: `?box=$BOX` must not list every box's."""
    empty = {name: ["must not be empty"] for name in names if request.query_params.get(name, None) == ""}
    if empty:
        raise ValidationError(empty)


class TruthField(forms.Field):
    """`true` or `false`, and nothing that would mean neither."""

    def clean(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        known = truth(str(value))
        if known is None:
            raise forms.ValidationError("must be true or false", code="invalid")
        return known


class TruthFilter(django_filters.BooleanFilter):
    """A filter by yes or no."""

    field_class = TruthField


class WholeNumberFilter(django_filters.NumberFilter):
    """Takes whole numbers only."""

    field_class = forms.IntegerField


class MomentField(IsoDateTimeField):
    """A time that a calendar has, whatever its zone makes of it."""

    def clean(self, value: Any) -> datetime | None:
        moment: datetime | None = super().clean(value)
        try:
            return moment and moment.astimezone(UTC)
        except (OverflowError, ValueError):  # the year 0 or 10000, by its zone
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None


class MomentFilter(django_filters.IsoDateTimeFilter):
    """`IsoDateTimeFilter` that gives the database only times that it knows."""

    field_class = MomentField
