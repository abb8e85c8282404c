"""`?wait=` of a view: an answer that comes when there is news, to a caller who may still have it then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request

from accounts.authentication import InvalidApiToken
from accounts.caller import caller_now, token_of
from base import wakeups
from base.api.parameters import wait_seconds

WAIT = OpenApiParameter("wait", int, description="Seconds to wait for news, 0 to 25.")


def after_waiting(request: Request, find: Callable[[], Any], key: str, field: str = "state") -> Any:
    """The row that `find` returns; with `wait`, once its `field` is another, or it took that long.

    `key` is what is notified of a change. A row that is terminal is answered at once. Raises as `wait_for` does.
    """
    found, seconds = find(), wait_seconds(request)
    if not seconds or found.is_terminal:
        return found
    seen = getattr(found, field)
    values = type(found).objects.filter(pk=found.pk).values_list(field, flat=True)
    wait_for(request, key, lambda: values.get() != seen, seconds)
    return find()


def wait_for(request: Request, key: str, met: Callable[[], bool], seconds: float) -> None:
    """Wait until `met()` is true, asking again whenever `key` is notified; at most `seconds`. No database connection is held.

    Afterwards `request.user` is the caller as they are now. Raises InvalidApiToken where their token was revoked or has
    expired meanwhile, and NotAuthenticated where their session has ended.
    """
    wakeups.wait_until(key, met, seconds=seconds)
    caller = caller_now(request)
    if caller is None:
        raise InvalidApiToken if token_of(request) else NotAuthenticated
    request.user = caller
