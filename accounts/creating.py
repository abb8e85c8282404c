"""What every request that creates something shares: the header `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import idempotency
from accounts.caller import user_of
from accounts.idempotency import Answer

KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 256},
    OpenApiParameter.HEADER,
    description="1 to 256 bytes. The same key with the same body gets the first answer again, for 24 hours.",
)
KEY_ERRORS = ("idempotency_conflict", "idempotency_in_progress", "invalid_idempotency_key")


def made_once(request: Request, route: str, work: Callable[[UUID], Answer]) -> Response:
    """The answer of `work(ticket id)`; the first answer again for a request whose key was answered before.

    `route` tells this creation from others under the same key. Raises InvalidIdempotencyKey, IdempotencyConflict or
    IdempotencyInProgress, and what `work` raises.
    """
    key = idempotency.checked_key(request.headers.get("Idempotency-Key"))
    answer = idempotency.once(user_of(request), route, key, request.data, work)
    return Response(answer.body, status=answer.status)
