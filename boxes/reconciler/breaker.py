"""A provider that suddenly shows almost none of our boxes is more likely wrong than they are gone.

Where a complete listing lacks more than five and more than half of the live rows, or as many are said to be gone when asked
about one by one, none of them is written off in that pass; staff are told, and the next pass decides. One missing box is
written off at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from base import hooks
from boxes.reconciler.types import Decision, End, Leave, Note, Stop
from boxes.states import StopReason

AT_LEAST = 5
HELD = Leave("too many boxes are missing at once; the next pass decides")


@dataclass(frozen=True, slots=True)
class Absence:
    """How many of the live rows the provider does not show, and how many of these their own answers would write off."""

    absent: int
    live: int
    written_off: int

    @property
    def is_suspect(self) -> bool:
        """Whether the provider is doubted before any of these is written off.

        Its list and its answers about single boxes may be wrong apart from each other.
        """
        return self.written_off > 0 and is_mass_absence(max(self.absent, self.written_off), self.live)


def is_mass_absence(missing: int, live: int) -> bool:
    """More than five, and more than half. Pure."""
    return missing > AT_LEAST and missing > live / 2


def absence(decisions: Sequence[Decision], listed: Collection[str]) -> Absence:
    """What the listing lacks of the rows that were decided about. Pure."""
    live = [entry for entry in decisions if entry.row.stopped_at is None and entry.row.box_id]
    return Absence(
        absent=sum(1 for entry in live if entry.row.box_id not in listed and not _was_shown(entry)),
        live=len(live),
        written_off=sum(1 for entry in decisions if _writes_off(entry)),
    )


def held_back(decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions without the write-offs. Pure."""
    return [Decision(entry.row, HELD) if _writes_off(entry) else entry for entry in decisions]


def guard(decisions: Sequence[Decision], listed: Collection[str], marker: str) -> list[Decision]:
    """The decisions of a pass, write-offs held back if this is the first pass in a row that doubts its listing."""
    found = absence(decisions, listed)
    was_suspect = _suspect_again(marker) if found.is_suspect else _forget()
    if not found.is_suspect or was_suspect:
        return list(decisions)
    hooks.incident_reporter(
        {
            "surface": "controller",
            "origin": "reconciler",
            "code": "mass_absence",
            "summary": f"the provider's list lacks {found.absent} of {found.live} live boxes, and {found.written_off} are"
            " said to be gone; none is written off in this pass",
        }
    )
    return held_back(decisions)


def _was_shown(decision: Decision) -> bool:
    """Its own answer showed the box: a new one, or one that the provider ended and lists no more."""
    return isinstance(decision.action, Note | Stop) or (
        isinstance(decision.action, End) and not _writes_off(decision)
    )


def _writes_off(decision: Decision) -> bool:
    return isinstance(decision.action, End) and decision.action.reason == StopReason.PROVIDER_MISSING


def _suspect_again(marker: str) -> bool:
    """Keep that this pass doubts its listing; returns whether the one before did."""
    with connection.cursor() as cursor:
        cursor.execute(_SUSPECT, [marker])
        row = cursor.fetchone()
    return row is not None


def _forget() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "update installation set absence_suspected_at = null where absence_suspected_at is not null"
        )
    return False


# The row may not be there yet: a marker that is set needs none.
_SUSPECT = """
    with before as (select 1 from installation where absence_suspected_at is not null),
    kept as (
        insert into installation (id, ownership_marker, absence_suspected_at) values (1, %s, clock_timestamp())
        on conflict (id) do update set absence_suspected_at = excluded.absence_suspected_at)
    select * from before
"""
