"""Views that several apps build on."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.generics import ListAPIView


class OwnedList(ListAPIView[Any]):
    """A list of what the caller may see. A view names `queryset` (none of the model) and gives `rows()`."""

    def rows(self) -> QuerySet[Any]:
        """The rows that this caller may see."""
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[Any]:
        # The description of the API is made without a caller.
        return super().get_queryset() if getattr(self, "swagger_fake_view", False) else self.rows()
