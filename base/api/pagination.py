"""Lists: newest first, by cursor, so that a page costs the same however long the history is."""

from __future__ import annotations

import base64
from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.exceptions import ValidationError as DrfValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from base.api.parameters import whole_number
from base.errors import CodedError

LARGEST = 10**18


class InvalidCursor(CodedError):
    """The cursor is not one that this list gave."""

    code = "invalid_cursor"


class NewestFirstPagination(CursorPagination):
    """`?cursor=&page_size=` (50, at most 200) -> `{"results", "next", "previous"}`."""

    ordering: tuple[str, ...] = ("-created_at", "-id")
    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """The page that the cursor names. Raises InvalidCursor also for one that can be read and means no place in this list."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError):
            raise InvalidCursor from None

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

    def decode_cursor(self, request: Request) -> Any:
        given = request.query_params.get(self.cursor_query_param, "")
        try:
            if given and not base64.b64decode(given, validate=True):
                raise InvalidCursor
            return super().decode_cursor(request)
        except (NotFound, ValueError):
            raise InvalidCursor from None
