"""Lists: newest first, by cursor, so that a page costs the same however long the history is."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.exceptions import ValidationError as DrfValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.utils.urls import remove_query_param, replace_query_param

from base.api.parameters import whole_number
from base.errors import CodedError

LARGEST = 10**18


class InvalidCursor(CodedError):
    """The cursor is not one that this list gave."""

    code = "invalid_cursor"


@dataclass(frozen=True, slots=True)
class Place:
    """Beside a row of a list: behind it, or with `backwards` before it.

    `beside` has the row's values of all that the list is ordered by, which no two rows share. None: at the end of the list
    where the reading begins.
    """

    beside: tuple[str, ...] | None = None
    backwards: bool = False


class NewestFirstPagination(CursorPagination):
    """`?cursor=&page_size=` (50, at most 200) -> `{"results", "next", "previous"}`.

    Whoever follows `next` meets each row that is there all the while once, whatever comes and goes meanwhile and however many
    were made at the same moment: a cursor counts no rows, it names the one that was shown last.
    """

    ordering: tuple[str, ...] = ("-created_at", "-id")
    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The page that the cursor names. Raises InvalidCursor also for one that can be read and means no place in this list."""
        size = self.get_page_size(request)
        self.address = request.build_absolute_uri()
        self.place = self._place(request)
        try:
            rows = list(self._from(queryset, self.place)[: size + 1])
        except (ValidationError, ValueError, OverflowError):
            raise InvalidCursor from None
        self.goes_on = len(rows) > size
        self.shown = rows[:size][::-1] if self.place.backwards else rows[:size]
        return self.shown

    def get_next_link(self) -> str | None:
        """The address of the page behind this one; None at the end."""
        is_last = not self.place.backwards and not self.goes_on
        if is_last:
            return None
        return self._link(Place(self._values(self.shown[-1])) if self.shown else Place())

    def get_previous_link(self) -> str | None:
        """The address of the page before this one; None at the beginning."""
        is_first = not self.goes_on if self.place.backwards else self.place.beside is None
        if is_first:
            return None
        return self._link(Place(self._values(self.shown[0]) if self.shown else None, backwards=True))

    def get_page_size(self, request: Request) -> int:
        """What `page_size` asks for, at most `max_page_size`. Raises ValidationError for what is no size."""
        asked = whole_number(request, self.page_size_query_param, default=self.page_size, maximum=LARGEST)
        if asked < 1:
            raise DrfValidationError({self.page_size_query_param: ["must be 1 or more"]})
        return min(asked, self.max_page_size)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """The cursor, and the size with its bounds."""
        size = {
            "name": self.page_size_query_param,
            "in": "query",
            "required": False,
            "description": f"How many rows; more than {self.max_page_size} counts as {self.max_page_size}.",
            "schema": {"type": "integer", "minimum": 1, "default": self.page_size},
        }
        kept: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        return [each for each in kept if each["name"] != self.page_size_query_param] + [size]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A page; at an end of the list there is no address further on."""
        address = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": address, "previous": address, "results": schema},
        }

    def _place(self, request: Request) -> Place:
        """The place that the cursor names; without one the beginning."""
        given = request.query_params.get(self.cursor_query_param)
        if given is None:
            return Place()
        try:
            backwards, *beside = json.loads(urlsafe_b64decode(given))
        except (ValueError, TypeError, RecursionError):
            raise InvalidCursor from None
        is_ours = backwards in (0, 1) and all(type(value) is str for value in beside)
        if not is_ours or len(beside) not in {0, len(self.ordering)}:
            raise InvalidCursor
        return Place(tuple(beside) or None, bool(backwards))

    def _link(self, place: Place) -> str:
        if place == Place():
            return str(remove_query_param(self.address, self.cursor_query_param))
        text = json.dumps([int(place.backwards), *(place.beside or ())], separators=(",", ":"))
        return str(
            replace_query_param(
                self.address, self.cursor_query_param, urlsafe_b64encode(text.encode()).decode()
            )
        )

    def _values(self, row: Any) -> tuple[str, ...]:
        return tuple(str(getattr(row, name.lstrip("-"))) for name in self.ordering)

    def _from(self, rows: QuerySet[Any], place: Place) -> QuerySet[Any]:
        """The rows from this place on, in the order in which they are read."""
        steps = [(name.lstrip("-"), name.startswith("-") != place.backwards) for name in self.ordering]
        ordered = rows.order_by(*(f"-{name}" if falling else name for name, falling in steps))
        if place.beside is None:
            return ordered
        values = [_value(rows.model, name, text) for (name, _), text in zip(steps, place.beside, strict=True)]
        return ordered.filter(_beyond(steps, values))


def _value(model: type[Model], name: str, text: str) -> Any:
    """The value of a column that this text stands for. Raises ValidationError, ValueError."""
    field: Any = model._meta.get_field(name)
    value = field.to_python(text)
    if isinstance(value, datetime) and value.tzinfo is None:
        raise InvalidCursor
    return value


def _beyond(steps: list[tuple[str, bool]], values: list[Any]) -> Q:
    """Whatever is ordered behind these values: by the first that differs. Said so that an index on all of them is read from the place on."""
    (name, falling), *others = steps
    side = "lt" if falling else "gt"
    if not others:
        return Q(**{f"{name}__{side}": values[0]})
    behind = Q(**{f"{name}__{side}": values[0]}) | _beyond(others, values[1:])
    return Q(**{f"{name}__{side}e": values[0]}) & behind
