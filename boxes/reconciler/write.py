"""What a pass writes about rows: each kind in one statement, and never over a row that changed after it was read.

A row that somebody claimed meanwhile (a stop, a step of its creation) has another generation or another lease, and one that
was stopped has `stopped_at`: none of them is written, and the next pass sees it as it is then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection

from base import notify
from boxes.reconciler.batches import written
from boxes.reconciler.types import BackOff, Note, PutOff, Row

FIRST_BACKOFF_SECONDS = 5
LONGEST_BACKOFF_SECONDS = 300
_SEEN = "seen(id, generation, lease_expires_at"
_UNTOUCHED = (
    "box.id = seen.id and box.generation = seen.generation and box.stopped_at is null"
    " and box.lease_expires_at is not distinct from seen.lease_expires_at"
)
_GROWING = (
    f"clock_timestamp() + make_interval(secs => least({LONGEST_BACKOFF_SECONDS},"
    f" {FIRST_BACKOFF_SECONDS} * power(2, least(%s, 6))))"
)
_HOLD_AGAINST = (
    "reconciliation_failures = box.reconciliation_failures + 1, next_reconciliation_at = "
    + _GROWING % "box.reconciliation_failures"
)

_NOTES = f"""
    update conversation_boxes box set
        state = seen.state, setup_status = seen.setup_status, last_reconciled_at = clock_timestamp(),
        reconciliation_failures = 0, reconciliation_error = null, next_reconciliation_at = null,
        marked_at = case when seen.is_marked then coalesce(box.marked_at, clock_timestamp()) else box.marked_at end,
        next_provision_at = case when seen.needs_mark and box.stop_requested_at is null
            then coalesce(box.next_provision_at, clock_timestamp()) else box.next_provision_at end
    from unnest(%s::uuid[], %s::bigint[], %s::timestamptz[], %s::text[], %s::text[], %s::bool[], %s::bool[])
        as {_SEEN}, state, setup_status, is_marked, needs_mark)
    where {_UNTOUCHED} returning box.id
"""  # noqa: S608 - the fragments are constants of ours, here and below
_BACK_OFF = f"""
    update conversation_boxes box set {_HOLD_AGAINST}, reconciliation_error = seen.code
    from unnest(%s::uuid[], %s::bigint[], %s::timestamptz[], %s::text[]) as {_SEEN}, code)
    where {_UNTOUCHED} returning box.id
"""  # noqa: S608
_PUT_OFF = f"""
    update conversation_boxes box set
        next_reconciliation_at = clock_timestamp() + make_interval(secs => seen.seconds)
    from unnest(%s::uuid[], %s::bigint[], %s::timestamptz[], %s::float8[]) as {_SEEN}, seconds)
    where {_UNTOUCHED} returning box.id
"""  # noqa: S608
_UNCHANGED = f"""
    select 1 from conversation_boxes box,
        (select %s::uuid as id, %s::bigint as generation, %s::timestamptz as lease_expires_at) seen
    where {_UNTOUCHED} for no key update of box
"""  # noqa: S608

A = TypeVar("A")
Pairs = Sequence[tuple[Row, A]]


def notes(seen: Pairs[Note]) -> set[UUID]:
    """Write what was observed of healthy rows; the ids that were written."""
    noted = set(
        written(
            _NOTES,
            seen,
            lambda pair: (
                *_key(pair[0]),
                str(pair[1].state),
                str(pair[1].setup_status),
                pair[1].is_marked,
                pair[1].needs_mark,
            ),
        )
    )
    if any(note.needs_mark for _, note in seen):
        notify.notify(notify.DUE, "provisioning")
    return noted


def back_off(failed: Pairs[BackOff]) -> set[UUID]:
    """Hold a failure against each row: 5 s, then twice as long each time, at most 300 s."""
    return set(written(_BACK_OFF, failed, lambda pair: (*_key(pair[0]), pair[1].code[:128])))


def put_off(deferred: Pairs[PutOff]) -> set[UUID]:
    """Look at each row again later, without holding anything against it."""
    return set(written(_PUT_OFF, deferred, lambda pair: (*_key(pair[0]), pair[1].seconds)))


def is_as_read(row: Row) -> bool:
    """Whether nobody changed the row since it was read; it is locked until the transaction of the caller ends."""
    with connection.cursor() as cursor:
        cursor.execute(_UNCHANGED, _key(row))
        return cursor.fetchone() is not None


def stop_failed(row: Row, code: str) -> None:
    """Hold a failed stop against the row, unless it is stopped by now.

    It counts on from what the row had when it was read: the look that came before the stop did not make it well.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "update conversation_boxes set reconciliation_failures = %s, reconciliation_error = %s,"  # noqa: S608
            f" next_reconciliation_at = {_GROWING} where id = %s and stopped_at is null",
            [row.reconciliation_failures + 1, code[:128], row.reconciliation_failures, row.pk],
        )


def stop_put_off(pk: UUID, seconds: float) -> None:
    """Try the stop again after `seconds`, without holding anything against the row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "update conversation_boxes set next_reconciliation_at = clock_timestamp() + make_interval(secs => %s)"
            " where id = %s and stopped_at is null",
            [seconds, pk],
        )


def listing_failed(code: str) -> int:
    """Hold a listing that could not be had against every considered row; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"update conversation_boxes box set {_HOLD_AGAINST}, reconciliation_error = %s"  # noqa: S608
            " where box.stopped_at is null or box.usage_settled_at is null",
            [code[:128]],
        )
        return int(cursor.rowcount)


def _key(row: Row) -> list[Any]:
    return [row.pk, row.generation, row.lease_expires_at]
