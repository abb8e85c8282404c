"""The ledger as a pass reads it: which rows are considered, and how each looks as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import BigIntegerField, Q
from django.db.models.expressions import RawSQL

from boxes import activity
from boxes.client.dialect import checked_id
from boxes.conf import BoxApi
from boxes.errors import Refused
from boxes.installation import provider_ownership_marker
from boxes.models import Box
from boxes.reconciler.types import Policy, Row
from boxes.states import StopReason
from boxes.stopping import CLAIM_SECONDS

READ = (
    "pk",
    "box_id",
    "label",
    "generation",
    "created_at",
    "lease_expires_at",
    "last_activity_at",
    "extended_until",
    "stopped_at",
    "stop_reason",
    "stop_requested_at",
    "stop_requested_reason",
    "next_reconciliation_at",
    "reconciliation_failures",
    "undone_sightings",
    "usage_settled_at",
    "create_key",
    "marked_at",
)
_VERSION = RawSQL("conversation_boxes.xmin::text::bigint", [], output_field=BigIntegerField())


def policy_of(conf: BoxApi) -> Policy:
    return Policy(
        marker=provider_ownership_marker(),
        ttl_seconds=conf.ttl_seconds,
        maximum_lifetime_seconds=conf.maximum_lifetime_seconds,
        idle_timeout=timedelta(seconds=conf.idle_timeout_seconds),
        claim_age=timedelta(seconds=CLAIM_SECONDS),
        evidence="list" if conf.reconcile_evidence == "list" else "get",
    )


def considered_boxes() -> list[Box]:
    """The rows of a pass, oldest first: active ones, and stopped ones whose usage is not settled. One query.

    Each comes with its `version`, which every write to the row changes.
    """
    wanted = Q(stopped_at__isnull=True) | Q(usage_settled_at__isnull=True)
    rows = Box.objects.filter(wanted).order_by("created_at", "id")
    return list(rows.annotate(version=_VERSION).only(*READ))


def versions() -> dict[UUID, int]:
    """The version of each active row now. One query."""
    return dict(Box.objects.filter(stopped_at=None).order_by().values_list("pk", _VERSION))


def rows_of(boxes: Sequence[Box]) -> list[Row]:
    """The boxes as plain rows, each with its last activity; as many queries as there are reporters of activity."""
    idle = activity.idle_since(boxes)
    return [_row(box, idle) for box in boxes]


def _row(box: Box, idle: Mapping[UUID, datetime | None]) -> Row:
    return Row(
        pk=box.pk,
        box_id=box.box_id,
        label=box.label,
        generation=box.generation,
        created_at=box.created_at,
        lease_expires_at=box.lease_expires_at,
        extended_until=box.extended_until,
        stopped_at=box.stopped_at,
        stop_requested_at=box.stop_requested_at,
        stop_requested_reason=StopReason(box.stop_requested_reason) if box.stop_requested_reason else None,
        next_reconciliation_at=box.next_reconciliation_at,
        reconciliation_failures=box.reconciliation_failures,
        idle_since=idle[box.pk],
        is_askable=_is_askable(box.box_id),
        is_ours_to_mark=box.create_key is not None and box.marked_at is None,
    )


def _is_askable(box_id: str | None) -> bool:
    try:
        return box_id is None or bool(checked_id(box_id))
    except Refused:
        return False
