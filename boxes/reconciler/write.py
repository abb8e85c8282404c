"""What a pass writes about rows: each kind in one statement, and never over a row that changed after it was read.

A row that somebody claimed meanwhile (a stop, a step of its creation) has another generation, and one that was stopped has
`stopped_at`: neither is written, and the next pass sees it as it is then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from base import notify
from boxes.reconciler.types import BackOff, Note, PutOff, Row

FIRST_BACKOFF_SECONDS = 5
LONGEST_BACKOFF_SECONDS = 300
_UNTOUCHED = "box.id = seen.id and box.generation = seen.generation and box.stopped_at is null"
_GROWING = (
    f"clock_timestamp() + make_interval(secs => least({LONGEST_BACKOFF_SECONDS},"
    f" {FIRST_BACKOFF_SECONDS} * power(2, least(box.reconciliation_failures, 6))))"
)


def notes(seen: Sequence[tuple[Row, Note]]) -> set[UUID]:
    """Write what was observed of healthy rows; the ids that were written."""
    if not seen:
        return set()
    rows = _returned(
        f"""
        update conversation_boxes box set
            state = seen.state, setup_status = seen.setup_status, last_reconciled_at = clock_timestamp(),
            reconciliation_failures = 0, reconciliation_error = null, next_reconciliation_at = null,
            marked_at = case when seen.is_marked then coalesce(box.marked_at, clock_timestamp()) else box.marked_at end,
            next_provision_at = case when seen.needs_mark and box.stop_requested_at is null
                then coalesce(box.next_provision_at, clock_timestamp()) else box.next_provision_at end
        from unnest(%s::uuid[], %s::bigint[], %s::text[], %s::text[], %s::bool[], %s::bool[])
            as seen(id, generation, state, setup_status, is_marked, needs_mark)
        where {_UNTOUCHED} returning box.id
        """,  # noqa: S608 - constants of ours
        [
            [row.pk for row, _ in seen],
            [row.generation for row, _ in seen],
            [str(note.state) for _, note in seen],
            [str(note.setup_status) for _, note in seen],
            [note.is_marked for _, note in seen],
            [note.needs_mark for _, note in seen],
        ],
    )
    if any(note.needs_mark for _, note in seen):
        notify.notify(notify.DUE, "provisioning")
    return rows


def back_off(failed: Sequence[tuple[Row, BackOff]]) -> set[UUID]:
    """Hold a failure against each row: 5 s, then twice as long each time, at most 300 s."""
    if not failed:
        return set()
    return _returned(
        f"""
        update conversation_boxes box set reconciliation_failures = box.reconciliation_failures + 1,
            reconciliation_error = seen.code, next_reconciliation_at = {_GROWING}
        from unnest(%s::uuid[], %s::bigint[], %s::text[]) as seen(id, generation, code)
        where {_UNTOUCHED} returning box.id
        """,  # noqa: S608
        [
            [row.pk for row, _ in failed],
            [row.generation for row, _ in failed],
            [action.code[:128] for _, action in failed],
        ],
    )


def stop_failed(pk: UUID, code: str) -> None:
    """Hold a failed stop against the row, unless it is stopped by now."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update conversation_boxes box set reconciliation_failures = box.reconciliation_failures + 1,
                reconciliation_error = %s, next_reconciliation_at = {_GROWING}
            where box.id = %s and box.stopped_at is null
            """,  # noqa: S608
            [code[:128], pk],
        )


def put_off(deferred: Sequence[tuple[Row, PutOff]]) -> set[UUID]:
    """Look at each row again later, without holding anything against it."""
    if not deferred:
        return set()
    return _returned(
        f"""
        update conversation_boxes box set
            next_reconciliation_at = clock_timestamp() + make_interval(secs => seen.seconds)
        from unnest(%s::uuid[], %s::bigint[], %s::float8[]) as seen(id, generation, seconds)
        where {_UNTOUCHED} returning box.id
        """,  # noqa: S608
        [
            [row.pk for row, _ in deferred],
            [row.generation for row, _ in deferred],
            [action.seconds for _, action in deferred],
        ],
    )


def listing_failed(code: str) -> int:
    """Hold a listing that could not be had against every considered row; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update conversation_boxes box set reconciliation_failures = box.reconciliation_failures + 1,
                reconciliation_error = %s, next_reconciliation_at = {_GROWING}
            where box.stopped_at is null or box.usage_settled_at is null
            """,  # noqa: S608
            [code[:128]],
        )
        return int(cursor.rowcount)


def _returned(sql: str, parameters: list[Any]) -> set[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return {row[0] for row in cursor.fetchall()}
