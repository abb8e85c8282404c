"""Rows below the row that they belong to."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from unfold.admin import TabularInline

from base.admin.permissions import NothingByHand


class ReadOnlyInline(NothingByHand, TabularInline):
    """Looked at, a page at a time, and never edited."""

    extra = 0
    can_delete = False
    per_page = 20

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)
