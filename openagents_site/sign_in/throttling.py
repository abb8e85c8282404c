"""How often passwords may be tried. Counted in the database, so that every web process sees the same count.

Two bounds hold, on `/accounts/login/` and `/admin/login/` alike: wrong passwords for one user name from one address
(django-axes locks the pair for a while), and all passwords tried from one address in a minute.
"""

from __future__ import annotations

import math
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import structlog
from axes.backends import AxesStandaloneBackend
from axes.models import AccessAttempt
from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from accounts import rates
from accounts.rates import RateLimited
from base.addresses import counted
from openagents_site.sign_in.conf import sign_in_settings
from openagents_site.sign_in.pages import locked_page
from work.machines import throttling

LONGEST_NAME = 150
log = structlog.get_logger(__name__)


class ThrottlingBackend(AxesStandaloneBackend):
    """Lets nobody in: it refuses tries beyond the bounds before a password is looked at."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Raises PermissionDenied, which ends the attempt; the answer becomes 429."""
        if request is None:
            return
        try:
            rates.count(
                f"address:{counted_address(request)}", "sign_in", sign_in_settings().passwords_per_minute
            )
        except RateLimited as limited:
            marked: Any = request
            marked.axes_locked_out, marked.retry_after_seconds = True, limited.retry_after_seconds
            raise PermissionDenied from limited
        super().authenticate(request, **credentials)


def client_address(request: HttpRequest) -> str | None:
    """Whom the request comes from, or None where what the proxy says is not an address."""
    named = throttling.client_address(request)
    try:
        return str(ip_address(named))
    except ValueError:
        return None


def counted_address(request: HttpRequest) -> str | None:
    """For whom a try counts: the address, or all IPv6 addresses that one customer has."""
    address = client_address(request)
    return None if address is None else counted(address)


def client_name(request: HttpRequest, credentials: dict[str, Any] | None) -> str:
    """The user name that was tried, short enough to be kept."""
    tried = (credentials or {}).get("username") or request.POST.get("username") or request.POST.get("login")
    return str(tried or "")[:LONGEST_NAME].replace("\0", "")


def failure_limit(request: HttpRequest, credentials: dict[str, Any] | None) -> int:
    return sign_in_settings().password_failures


def lock_time(request: HttpRequest | None) -> timedelta:
    return timedelta(minutes=sign_in_settings().lock_minutes)


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: dict[str, Any] | None = None
) -> HttpResponse:
    """429, and when to try again. The same for names that exist and for those that do not."""
    seconds = getattr(request, "retry_after_seconds", None) or _seconds_locked(request, credentials)
    log.warning("sign_in_refused", address=client_address(request), retry_after_seconds=seconds)
    return locked_page(request, seconds)


def _seconds_locked(request: HttpRequest, credentials: dict[str, Any] | None) -> int:
    known = AccessAttempt.objects.filter(
        username=client_name(request, credentials), ip_address=counted_address(request)
    )
    last = known.aggregate(last=Max("attempt_time"))["last"] or timezone.now()
    return max(1, math.ceil((last + lock_time(request) - timezone.now()).total_seconds()))
