"""The fleet: boxes with what goes on in them, read anew from the ledgers every time, in a fixed number of queries.

Nothing of it is kept anywhere. Texts that come from a box or from a person are redacted and bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, IntegerField, QuerySet, Value, When

from base.clock import database_now
from base.redaction import redact
from base.text import keep_last_bytes
from boxes import activity
from boxes.conf import box_api
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.states import ItemState
from runs.log_store import secrets_of
from runs.models import Run

MAXIMUM_BOXES = 10
MAXIMUM_QUEUED = 100
OUTPUT_BYTES = 2048  # the end of the newest run's output


@dataclass(frozen=True, slots=True)
class FleetRun:
    """The newest run of a box."""

    id: UUID
    state: str
    is_terminal: bool
    exit_status: int | None
    failure_reason: str | None
    output: str


@dataclass(frozen=True, slots=True)
class FleetBox:
    """A box and its newest run. `age_seconds` counts from its creation until it was stopped, or until now."""

    id: UUID
    box_id: str | None
    label: str
    state: str
    setup_status: str
    age_seconds: int
    stopped_at: datetime | None
    stop_reason: str | None
    expires_at: datetime | None
    idle_since: datetime | None
    run: FleetRun | None


@dataclass(frozen=True, slots=True)
class QueuedBox:
    """A box of a plan that waits for a place."""

    plan: UUID
    position: int
    label: str
    queue_reason: str | None
    queued_at: datetime | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a conversation has, and what it waits for."""

    conversation: UUID
    admitted_count: int
    effective_cap: int
    effective_limits: Mapping[str, Any]
    maximum_boxes: int
    boxes: Sequence[FleetBox]
    queued: Sequence[QueuedBox]
    queued_truncated: bool


def fleet_of(conversation_id: UUID) -> Fleet:
    """The fleet of one conversation. Seven queries at most."""
    boxes = Box.objects.filter(conversation_id=conversation_id)
    plan = FanoutRequest.objects.filter(conversation_id=conversation_id).only("effective_limits").first()
    limits = plan.effective_limits if plan else {"conversation_active_limit": _default_cap()}
    queued = _queued(conversation_id)
    return Fleet(
        conversation=conversation_id,
        admitted_count=boxes.filter(stopped_at=None).count(),
        effective_cap=int(limits.get("conversation_active_limit", _default_cap())),
        effective_limits=limits,
        maximum_boxes=MAXIMUM_BOXES,
        boxes=fleet_boxes(boxes, MAXIMUM_BOXES),
        queued=queued[:MAXIMUM_QUEUED],
        queued_truncated=len(queued) > MAXIMUM_QUEUED,
    )


def fleet_boxes(boxes: QuerySet[Box], limit: int) -> list[FleetBox]:
    """At most `limit` of these boxes, active ones first, then the oldest. Three queries."""
    is_stopped = Case(When(stopped_at=None, then=Value(0)), default=Value(1), output_field=IntegerField())
    chosen = activity.attach(boxes.order_by(is_stopped, "created_at", "id")[:limit])
    runs = _newest_runs([box.pk for box in chosen])
    now = database_now()
    return [_box(box, runs.get(box.pk), now) for box in chosen]


def _default_cap() -> int:
    return box_api().default_maximum_active_boxes


def _newest_runs(box_ids: Sequence[UUID]) -> dict[UUID, Run]:
    newest = (
        Run.objects.filter(conversation_box__in=box_ids)
        .order_by("conversation_box_id", "-admitted_at", "-id")
        .distinct("conversation_box_id")
        .only("id", "conversation_box_id", "state", "exit_status", "failure_reason", "output")
    )
    return {run.conversation_box_id: run for run in newest} if box_ids else {}


def _queued(conversation_id: UUID) -> list[QueuedBox]:
    waiting = FanoutItem.objects.filter(conversation_id=conversation_id, state=ItemState.QUEUED)
    rows = waiting.order_by("queue_sequence")[: MAXIMUM_QUEUED + 1]
    return [
        QueuedBox(item.request_id, item.position, _redacted(item.label), item.queue_reason, item.queued_at)
        for item in rows
    ]


def _box(box: Box, run: Run | None, now: datetime) -> FleetBox:
    lived = (box.stopped_at or now) - box.created_at
    return FleetBox(
        id=box.pk,
        box_id=box.box_id,
        label=_redacted(box.label),
        state=box.state,
        setup_status=box.setup_status,
        age_seconds=max(0, int(lived.total_seconds())),
        stopped_at=box.stopped_at,
        stop_reason=box.stop_reason,
        expires_at=box.expires_at,
        idle_since=box.idle_since,
        run=_run(run) if run else None,
    )


def _run(run: Run) -> FleetRun:
    output, _ = keep_last_bytes(_redacted(run.output), OUTPUT_BYTES)
    reason = _redacted(run.failure_reason) if run.failure_reason else None
    return FleetRun(run.pk, run.state, run.is_terminal, run.exit_status, reason, output)


def _redacted(text: str) -> str:
    return redact(text, secrets=secrets_of(box_api()))
