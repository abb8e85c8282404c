"""A provider that suddenly shows almost none of our boxes is more likely wrong than they are gone.

Where a complete listing lacks more than five and more than half of the live rows, none of them is written off in that
pass, whatever each box's own answer was; staff are told, and the next pass decides. One missing box is written off at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from base import hooks
from boxes.reconciler.types import Decision, End, Leave
from boxes.states import StopReason

AT_LEAST = 5
HELD = Leave("too many boxes are missing at once; the next pass decides")


def is_mass_absence(missing: int, live: int) -> bool:
    """Whether so many of the live rows are missing that the listing is doubted. Pure."""
    return missing > AT_LEAST and missing > live / 2


def hold_back(decisions: Sequence[Decision], listed: Collection[str]) -> list[Decision]:
    """The decisions, write-offs held back if this is the first pass that sees a mass absence."""
    live = [decision.row for decision in decisions if decision.row.stopped_at is None and decision.row.box_id]
    absent = sum(1 for row in live if row.box_id not in listed)
    if not is_mass_absence(absent, len(live)):
        _remember(suspected=False)
        return list(decisions)
    if _remember(suspected=True):
        return list(decisions)  # the pass before saw it too
    _tell(absent, len(live))
    return [Decision(entry.row, HELD) if _writes_off(entry) else entry for entry in decisions]


def _writes_off(decision: Decision) -> bool:
    return isinstance(decision.action, End) and decision.action.reason == StopReason.PROVIDER_MISSING


def _remember(*, suspected: bool) -> bool:
    """Keep whether this pass saw a mass absence; returns whether the one before did."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            update installation new set absence_suspected_at = case when %s then clock_timestamp() end
            from installation old where new.id = old.id and (old.absence_suspected_at is not null or %s)
            returning old.absence_suspected_at is not null
            """,
            [suspected, suspected],
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def _tell(absent: int, live: int) -> None:
    hooks.incident_reporter(
        {
            "surface": "controller",
            "origin": "reconciler",
            "code": "mass_absence",
            "summary": f"the provider's list lacks {absent} of {live} live boxes; none is written off in this pass",
        }
    )
