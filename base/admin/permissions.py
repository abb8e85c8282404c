"""What may be done with the rows of a page by hand."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


class NothingByHand:
    """Rows are looked at; they are neither added, changed nor deleted in a form."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
