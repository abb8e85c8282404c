"""What every request that creates something shares: the header `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import idempotency
from accounts.caller import user_of
from accounts.idempotency import Answer, IdempotencyConflict
from base.sealing import SealBroken, seal, unseal

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


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """A secret in the `field` of an answer: who asks sees it, and what is kept of the answer holds it sealed for `purpose`."""

    field: str
    purpose: str

    def sealed(self, secret: str) -> str:
        """What stands in the field of the answer that is kept."""
        return seal(self.purpose, secret.encode()).hex()

    def shown(self, answer: Response) -> Response:
        """The answer with the secret itself. Raises IdempotencyConflict where what was kept cannot be opened any more."""
        try:
            secret = unseal(self.purpose, bytes.fromhex(answer.data[self.field])).decode()
        except SealBroken:
            raise IdempotencyConflict(
                detail=f"the {self.field} of this key was sealed with a key that is not known any more"
            ) from None
        answer.data = answer.data | {self.field: secret}
        answer["Cache-Control"] = "no-store"
        return answer
