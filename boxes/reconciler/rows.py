"""The ledger as a pass reads it: which rows are considered, and how each looks as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from boxes import activity
from boxes.client.dialect import checked_id
from boxes.conf import BoxApi
from boxes.errors import Refused
from boxes.installation import provider_ownership_marker
from boxes.reconciler.types import Policy, Row
from boxes.states import BoxState, SetupStatus, StopReason
from boxes.stopping import CLAIM_SECONDS

NOTED_FOR = timedelta(minutes=5)
_COLUMNS = (
    "id, box_id, label, generation, created_at, xmin::text::bigint, state, setup_status, lease_expires_at, extended_until,"
    " last_activity_at, stopped_at, stop_reason, stop_requested_at, stop_requested_reason, last_reconciled_at,"
    " next_reconciliation_at, reconciliation_failures, undone_sightings, create_key is not null and marked_at is null"
)
_STATES = {state.value: state for state in BoxState}
_SETUP_STATUSES = {status.value: status for status in SetupStatus}
_REASONS: dict[str | None, StopReason | None] = {reason.value: reason for reason in StopReason}
_REASONS[None] = None


def policy_of(conf: BoxApi) -> Policy:
    return Policy(
        marker=provider_ownership_marker(),
        ttl_seconds=conf.ttl_seconds,
        maximum_lifetime_seconds=conf.maximum_lifetime_seconds,
        idle_timeout=timedelta(seconds=conf.idle_timeout_seconds),
        claim_age=timedelta(seconds=CLAIM_SECONDS),
        noted_for=NOTED_FOR,
        evidence="list" if conf.reconcile_evidence == "list" else "get",
    )


def considered_rows() -> list[Row]:
    """The rows of a pass, oldest first: active ones, and stopped ones whose usage is not settled.

    Each comes with its last activity: one query, and one for each reporter of activity.
    """
    return _read(
        "(stopped_at is null or usage_settled_at is null) order by created_at, id", [], with_activity=True
    )


def rows_with_ids(ids: Sequence[UUID]) -> list[Row]:
    """These rows as they are now, each with its last activity."""
    return _read("id = any(%s)", [list(ids)], with_activity=True) if ids else []


def rows_of_boxes(box_ids: Sequence[str]) -> list[Row]:
    """The rows of these provider ids, settled ones too, without their activity. At most one query."""
    return _read("box_id = any(%s)", [list(box_ids)], with_activity=False) if box_ids else []


def versions() -> dict[UUID, int]:
    """The version of each active row now. One query."""
    with connection.cursor() as cursor:
        cursor.execute("select id, xmin::text::bigint from conversation_boxes where stopped_at is null")
        return dict(cursor.fetchall())


def _read(where: str, parameters: list[Any], *, with_activity: bool) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(f"select {_COLUMNS} from conversation_boxes where {where}", parameters)  # noqa: S608
        rows = [_row(values) for values in cursor.fetchall()]
    if not with_activity:
        return rows
    idle = activity.idle_since(rows)
    return [row if (since := idle[row.pk]) is None else replace(row, idle_since=since) for row in rows]


def _row(values: Sequence[Any]) -> Row:
    pk, box_id, label, generation, created_at, version, state, setup, *times = values
    (
        lease,
        extended,
        active,
        stopped,
        reason,
        requested,
        requested_reason,
        reconciled,
        due,
        failures,
        undone,
        mark,
    ) = times
    return Row(
        pk=pk,
        box_id=box_id,
        label=label,
        generation=generation,
        created_at=created_at,
        version=version,
        state=_STATES[state],
        setup_status=_SETUP_STATUSES[setup],
        lease_expires_at=lease,
        extended_until=extended,
        last_activity_at=active,
        stopped_at=stopped,
        stop_reason=_REASONS[reason],
        stop_requested_at=requested,
        stop_requested_reason=_REASONS[requested_reason],
        last_reconciled_at=reconciled,
        next_reconciliation_at=due,
        reconciliation_failures=failures,
        undone_sightings=undone,
        is_askable=_is_askable(box_id),
        is_ours_to_mark=mark,
    )


def _is_askable(box_id: str | None) -> bool:
    try:
        return box_id is None or bool(checked_id(box_id))
    except Refused:
        return False
