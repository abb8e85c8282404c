"""`/api/v1/`: where everything is, for whoever looks there first."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url

from base.api.errors import body


def index(request: HttpRequest) -> HttpResponseBase:
    """Name and version of the API, and the addresses of its description, its pages and of signing in. For everybody."""
    if request.method not in {"GET", "HEAD"}:
        return _not_allowed()
    known = {
        "name": settings.SPECTACULAR_SETTINGS["TITLE"],
        "version": settings.SPECTACULAR_SETTINGS["VERSION"],
        "schema": _address("schema"),
        "docs": _address("docs"),
        "sign_in": _address(settings.LOGIN_URL),
        "me": f"{settings.PUBLIC_BASE_URL}/api/v1/me",
    }
    return JsonResponse(known)


def _address(name: str) -> str:
    return settings.PUBLIC_BASE_URL + resolve_url(name)


def _not_allowed() -> HttpResponseBase:
    refused = JsonResponse(body("method_not_allowed", "this address does not take that method"), status=405)
    refused["Allow"] = HttpResponseNotAllowed(["GET", "HEAD"])["Allow"]
    return refused
