"""Lists of a history that may have millions of rows."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Paginator
from django.db.models import Max, Min, QuerySet
from django.utils import timezone
from django.utils.functional import cached_property
from unfold.views import ChangeList

LARGEST = {"year": date.max.year, "month": 12, "day": 31}
MOST_ROWS = 10_000
"""How far a list is counted and leafed through; who looks for something older names a day, a state or an id."""


class BoundedPaginator(Paginator):
    """Counts no further than `MOST_ROWS`, so that a page of a long list costs what one of a short list costs."""

    template_name = "staff/pagination.html"

    @cached_property
    def _seen(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by().values("pk")[: MOST_ROWS + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._seen, MOST_ROWS)

    @property
    def has_more(self) -> bool:
        """Whether there are rows that the list does not lead to."""
        return self._seen > MOST_ROWS


class StaffChangeList(ChangeList):
    """A list with years, months and days to choose from, found by two looks into an index whatever the list is filtered by."""

    def get_queryset(self, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        """What no text of the database can hold is a filter that does not apply, as any other that makes no sense."""
        if any("\0" in text for values in self.params.values() for text in values):
            raise IncorrectLookupParameters
        try:
            found: QuerySet[Any] = super().get_queryset(*args, **kwargs)
            found.query.get_compiler(found.db).as_sql()  # a year that no calendar has is met only there
        except EmptyResultSet:
            pass
        except (ValueError, OverflowError):
            raise IncorrectLookupParameters from None
        return found

    def get_ordering_field(self, field_name: Any) -> Any:
        """None for a column that no index serves, whatever an address asks for."""
        if self.sortable_by is not None and field_name not in self.sortable_by:
            return None
        return super().get_ordering_field(field_name)

    def drill_down(self) -> dict[str, Any] | None:
        """What `admin/date_hierarchy.html` shows; None for a list without dates or without rows."""
        if not self.date_hierarchy:
            return None
        ends = self.root_queryset.order_by().aggregate(
            first=Min(self.date_hierarchy), last=Max(self.date_hierarchy)
        )
        if ends["first"] is None:
            return None
        first, last = (_day(ends[name]) for name in ("first", "last"))
        year, month, day = (self._chosen(part) for part in ("year", "month", "day"))
        if not year and first.year == last.year:
            year = first.year
        if year and month and 0 < day <= monthrange(year, month)[1]:
            return self._shown(_title(year, month, day), (year, month), [])
        if year and month:
            return self._shown(str(year), (year,), _days(year, month, first, last))
        if year:
            return self._shown("All dates", (), _months(year, first, last))
        return self._shown(None, (), [(number,) for number in range(first.year, last.year + 1)])

    def _chosen(self, part: str) -> int:
        given = self.params.get(f"{self.date_hierarchy}__{part}")
        value = given[-1] if isinstance(given, list) else given
        number = int(value) if value and re.fullmatch("[0-9]{1,4}", str(value)) else 0
        return number if number <= LARGEST[part] else 0

    def _shown(
        self, back: str | None, above: tuple[int, ...], choices: list[tuple[int, ...]]
    ) -> dict[str, Any]:
        shown = [{"link": self._link(choice), "title": _title(*choice)} for choice in choices]
        returns = {"link": self._link(above), "title": back} if back and self._chosen("year") else None
        return {"show": True, "choices": shown, "back": returns}

    def _link(self, chosen: tuple[int, ...]) -> str:
        names = (f"{self.date_hierarchy}__{part}" for part in ("year", "month", "day"))
        params = dict(zip(names, chosen, strict=False))
        return str(self.get_query_string(params, [f"{self.date_hierarchy}__"]))


def _day(moment: Any) -> date:
    return timezone.localtime(moment).date() if isinstance(moment, datetime) else moment


def _title(year: int, month: int = 0, day: int = 0) -> str:
    if not month:
        return str(year)
    return f"{date(year, month, 1):%b %Y}" if not day else f"{date(year, month, day):%b} {day}"


def _months(year: int, first: date, last: date) -> list[tuple[int, ...]]:
    months = [(year, month) for month in range(1, 13)]
    return [pair for pair in months if (first.year, first.month) <= pair <= (last.year, last.month)]


def _days(year: int, month: int, first: date, last: date) -> list[tuple[int, ...]]:
    if not (1 <= month <= 12 and date.min.year <= year <= date.max.year):
        return []
    start = date(year, month, 1)
    days = [start + timedelta(days=number) for number in range(31)]
    return [(day.year, day.month, day.day) for day in days if day.month == month and first <= day <= last]
