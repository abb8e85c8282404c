"""What several apps' lists can be filtered by."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django_filters.fields import IsoDateTimeField


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
