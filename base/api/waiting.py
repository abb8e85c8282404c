"""`?wait=` of a view that shows one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from base import wakeups
from base.api.parameters import wait_seconds

WAIT = OpenApiParameter("wait", int, description="Seconds to wait for news, 0 to 25.")


def after_waiting(request: Request, find: Callable[[], Any], key: str, field: str = "state") -> Any:
    """The row that `find` returns; with `wait`, once its `field` is another, or it took that long.

    `key` is what is notified of a change. A row that is terminal is answered at once. While it waits no database connection
    is held.
    """
    found, seconds = find(), wait_seconds(request)
    if not seconds or found.is_terminal:
        return found
    seen, values = (
        getattr(found, field),
        type(found).objects.filter(pk=found.pk).values_list(field, flat=True),
    )
    wakeups.wait_until(key, lambda: values.get() != seen, seconds=seconds)
    return find()
