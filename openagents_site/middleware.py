"""What the site adds to each request."""

from __future__ import annotations

from typing import Any

import pghistory
import structlog
from django.http import HttpRequest, HttpResponse
from pghistory import config
from pghistory.middleware import HistoryMiddleware as BaseHistoryMiddleware
from pghistory.middleware import WSGIRequest

from accounts.models import ApiToken
from work.models import Machine


class ActingRequest(WSGIRequest):
    """A request that tells the history who acts, as soon as that is known: views find out after the middleware."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "auth":
            pghistory.context(**credentials_of(value))
        super().__setattr__(name, value)


class HistoryMiddleware(BaseHistoryMiddleware):
    """Every history row written during a request carries its user, token or machine, its address and its request id."""

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        request_id = structlog.contextvars.get_contextvars().get("request_id")
        context: dict[str, Any] = super().get_context(request)
        return context | {"request_id": request_id}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer: HttpResponse
        if request.method in config.middleware_methods():
            with pghistory.context(**self.get_context(request)):
                request.__class__ = ActingRequest
                answer = self.get_response(request)
        else:
            answer = self.get_response(request)
        return answer


def credentials_of(auth: Any) -> dict[str, str]:
    """What was shown instead of a session, for the history."""
    if isinstance(auth, ApiToken):
        return {"token": str(auth.id)}
    return {"machine": str(auth.pk)} if isinstance(auth, Machine) else {}
