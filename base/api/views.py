"""Views that several apps build on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from django.db.models import QuerySet
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.views import APIView

from base.api.known_parameters import refuse_unknown


class ApiView(APIView):
    """What every call of the API is: it refuses query parameters that it does not take.

    A view sets `takes_all = False` where `all=true` would mean nothing: it is about the caller alone.
    """

    takes_all = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who asks is judged first, and then what is asked. Raises what either does."""
        super().initial(request, *args, **kwargs)
        refuse_unknown(request, self)


class OwnedList(ApiView, ListAPIView[Any], ABC):
    """A list of what the caller may see. A view names `queryset` (none of the model) and gives `rows()`."""

    @abstractmethod
    def rows(self) -> QuerySet[Any]:
        """The rows that this caller may see."""

    def get_queryset(self) -> QuerySet[Any]:
        # The description of the API is made without a caller.
        return super().get_queryset() if getattr(self, "swagger_fake_view", False) else self.rows()
