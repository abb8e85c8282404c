"""Stops that were accepted and then undone: a box that its row says is stopped, and that is up.

Providers may take a stop and put the box back when saving its disk fails. Two complete listings must show it up,
and the stop must be a while ago, before it is stopped again. The row stays stopped; its usage is settled
after the second stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from boxes.client import ProviderBox
from boxes.reconciler import events
from boxes.reconciler.events import Sighting
from boxes.reconciler.leaks import Claims
from boxes.reconciler.types import Row
from boxes.states import EventType, Resolution, StopReason

SETTLED_DOWN_AFTER = timedelta(seconds=300)
SIGHTINGS = 2
SETTLE_AFTER_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Undone:
    """A stopped row whose box was seen up. `is_due`: often and long enough to stop it again."""

    row: Row
    box: ProviderBox
    is_due: bool


def find_undone(boxes: Sequence[ProviderBox], claims: Claims, now: datetime) -> list[Undone]:
    """The stopped rows whose boxes this listing shows up. Pure."""
    found = []
    for box in boxes:
        row = claims.by_box_id.get(box.id)
        if row is None or row.stopped_at is None or not box.is_up or row.stop_reason == StopReason.FORGOTTEN:
            continue
        is_due = row.undone_sightings + 1 >= SIGHTINGS and now - row.stopped_at >= SETTLED_DOWN_AFTER
        found.append(Undone(row, box, is_due))
    return found


def note_sightings(undone: Sequence[Undone], claims: Claims) -> None:
    """Count this sighting, and forget those of rows whose boxes are not up any more. At most two statements."""
    seen = {entry.row.pk for entry in undone}
    calm = [row.pk for row in claims.by_box_id.values() if row.undone_sightings and row.pk not in seen]
    if seen:
        _set("undone_sightings + 1", list(seen))
    if calm:
        _set("0", calm)


def note_stopped_again(entries: Sequence[Undone], stopped: set[UUID]) -> None:
    """Record each undone stop; those that are `stopped` again are counted anew and settled after this stop."""
    if not entries:
        return
    if stopped:
        with connection.cursor() as cursor:
            cursor.execute(_STOPPED_AGAIN, [SETTLE_AFTER_SECONDS, list(stopped)])
    events.record(
        [
            Sighting(
                box_pk=entry.row.pk,
                box_id=str(entry.row.box_id),
                event_type=EventType.STOP_UNDONE,
                reason="stopped_box_came_up_again",
                details={"state": entry.box.raw_state},
                resolution=Resolution.STOPPED if entry.row.pk in stopped else None,
            )
            for entry in entries
        ]
    )


_STOPPED_AGAIN = """
    update conversation_boxes set undone_sightings = 0,
        next_settlement_at = case when usage_settled_at is null
            then clock_timestamp() + make_interval(secs => %s) end
    where id = any(%s)
"""


def _set(expression: str, ids: Sequence[UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"update conversation_boxes set undone_sightings = {expression} where id = any(%s)",  # noqa: S608
            [list(ids)],
        )
