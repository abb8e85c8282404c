"""Idempotency keys of creating requests: the same key and body get the first answer again.

The row is written before the work begins, so that of several requests at once only one works. A refusal is not kept: the
next request with the key is a first one again. If the process dies in between, the key is free again after a
minute, and `ticket.id` is the same for the second attempt, so that what it creates can carry it as its own key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection

from accounts.models import IdempotencyKey, User
from base.errors import CodedError

LONGEST_KEY_BYTES = 256
WORK_SECONDS = 60
KEPT_HOURS = 24


class IdempotencyConflict(CodedError):
    """This idempotency key was used with another body."""

    code = "idempotency_conflict"


class IdempotencyInProgress(CodedError):
    """The first request with this idempotency key is still at work."""

    code = "idempotency_in_progress"


class InvalidIdempotencyKey(CodedError):
    """The header `Idempotency-Key` has 1 to 256 bytes."""

    code = "invalid_idempotency_key"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


def checked_key(text: str | None) -> str | None:
    """The key, or None if there is none. Raises InvalidIdempotencyKey."""
    if text is None:
        return None
    if not 1 <= len(text.encode(errors="surrogateescape")) <= LONGEST_KEY_BYTES or "\0" in text:
        raise InvalidIdempotencyKey
    return text


def once(user: User, route: str, key: str | None, body: Any, work: Callable[[UUID], Answer]) -> Answer:
    """Do `work(ticket id)` unless this key was answered before; without a key, always.

    Raises IdempotencyConflict or IdempotencyInProgress, and whatever `work` raises.
    """
    if key is None:
        return work(uuid4())
    ticket = _take(user, route, _digest(key), _digest(body))
    if ticket.status is not None:
        return Answer(ticket.status, ticket.answer)
    try:
        answer = work(ticket.id)
    except CodedError:  # a refusal: nothing was made. Anything else may have made something: the ticket stays
        IdempotencyKey.objects.filter(pk=ticket.pk, status=None).delete()
        raise
    kept = json.loads(json.dumps(answer.body, cls=DjangoJSONEncoder))
    IdempotencyKey.objects.filter(pk=ticket.pk).update(status=answer.status, answer=kept)
    return Answer(answer.status, kept)


def forget_old() -> int:
    """Delete keys older than 24 hours; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "delete from api_idempotency_keys where created_at < clock_timestamp() - make_interval(hours => %s)",
            [KEPT_HOURS],
        )
        return int(cursor.rowcount)


def _take(user: User, route: str, key_digest: bytes, body_digest: bytes) -> IdempotencyKey:
    """The ticket of this key, taken by us, or answered. One statement decides between several requests at once."""
    taken = IdempotencyKey.objects.raw(
        """
        insert into api_idempotency_keys (id, user_id, route, key_digest, body_digest, created_at, locked_until)
        values (%s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp() + make_interval(secs => %s))
        on conflict (user_id, route, key_digest) do update set locked_until = excluded.locked_until
        where api_idempotency_keys.status is null and api_idempotency_keys.locked_until < clock_timestamp()
          and api_idempotency_keys.body_digest = excluded.body_digest
        returning *
        """,
        [uuid4(), user.pk, route, key_digest, body_digest, WORK_SECONDS],
    )
    for ticket in taken:
        return ticket
    known = IdempotencyKey.objects.filter(user=user, route=route, key_digest=key_digest).first()
    if known is None:  # given back between the two statements
        return _take(user, route, key_digest, body_digest)
    if bytes(known.body_digest) != body_digest:
        raise IdempotencyConflict
    if known.status is None:
        raise IdempotencyInProgress
    return known


def _digest(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, cls=DjangoJSONEncoder)
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()
