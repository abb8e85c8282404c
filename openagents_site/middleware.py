"""What the site adds to each request."""

from __future__ import annotations

from typing import Any

import structlog
from django.http import HttpRequest
from pghistory.middleware import HistoryMiddleware as BaseHistoryMiddleware


class HistoryMiddleware(BaseHistoryMiddleware):
    """Every history row written during a request carries its actor, its address and its request id."""

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        request_id = structlog.contextvars.get_contextvars().get("request_id")
        context: dict[str, Any] = super().get_context(request)
        return context | {"request_id": request_id}
