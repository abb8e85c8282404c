"""The page itself, and who may read it."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from rest_framework.request import Request

from accounts.authentication import BearerTokenAuthentication, InvalidApiToken
from accounts.permissions import InsufficientScope, StaffOnly
from accounts.scopes import Scope
from accounts.services import scopes_of
from base.addresses import is_this_machine
from base.api.errors import body, status_of
from base.errors import CodedError
from boxes.conf import provider_is_here
from openagents_site.metrics.counters import registry

FORWARDED = (
    "HTTP_FORWARDED",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_REAL_IP",
    "HTTP_VIA",
)
"""What proxies add: a request that has one of them came from elsewhere, whatever its last hop was."""


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything that is measured, in Prometheus' text format; 401 or 403 for who may not read it."""
    refusal = refused(request)
    if refusal is not None:
        return _refusal(refusal)
    return HttpResponse(generate_latest(registry()), content_type=CONTENT_TYPE_LATEST)


def _refusal(error: CodedError) -> JsonResponse:
    status = status_of(error.code)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JsonResponse(body(error.code, error.detail), status=status, headers=headers)


def refused(request: HttpRequest) -> CodedError | None:
    """Why this caller may not read metrics, if so.

    Staff may, by token (scope `read`) or session; without either, who asks from this very machine, unless settings forbid it or
    boxes ask from it as well.
    """
    if "HTTP_AUTHORIZATION" in request.META:
        return _refused_token(request)
    if request.user.is_authenticated:
        return None if request.user.is_staff else StaffOnly()
    is_open = settings.METRICS_TO_LOOPBACK and is_local(request) and not provider_is_here()
    return None if is_open else InvalidApiToken()


def is_local(request: HttpRequest) -> bool:
    """Whether the request came from this machine and through no proxy that says so."""
    if any(name in request.META for name in FORWARDED):
        return False
    return is_this_machine(request.META.get("REMOTE_ADDR", ""))


def _refused_token(request: HttpRequest) -> CodedError | None:
    try:
        found = BearerTokenAuthentication().authenticate(Request(request))
    except InvalidApiToken as error:
        return error
    if found is None:
        return InvalidApiToken()
    user, token = found
    if Scope.READ not in scopes_of(token):
        return InsufficientScope()
    return None if user.is_staff else StaffOnly()
