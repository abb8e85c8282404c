"""Boxes at the provider that no row claims: which are reported, which are stopped, and when one is over.

A box of ours always has a row before it has our name, so a box with our name and without a row is a leak; it is stopped. A
box under another name may be somebody else's, or one of ours whose creation is not recorded yet: it is only reported, and
not while a creation is in flight. A part of a list says nothing about what is missing; this module is only called
with a complete one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection
from psycopg.types.json import Jsonb

from boxes.client import ProviderBox
from boxes.models import Box, ReconciliationEvent
from boxes.states import DOWN, EventType, Resolution, StopReason

REASON = "provider_box_without_ledger_claim"
YOUNGEST = timedelta(seconds=60)  # a box that the provider says is younger may be about to get its row
COMES_DOWN_WITHIN = timedelta(seconds=300)  # an accepted stop that is not visible after this was undone


class LeakStep(StrEnum):
    """What is done about one entry that may be a leak."""

    IGNORE = "ignore"
    REPORT = "report"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class KnownLeak:
    """What the ledger of events says of a leak that was seen before."""

    handled_at: datetime | None
    resolution: str | None


@dataclass(frozen=True, slots=True)
class Leak:
    """An entry that no row claims, and what is done about it. `reopens`: it was handled, and is up again."""

    box: ProviderBox
    owned: bool
    step: LeakStep
    reopens: bool = False


@dataclass(frozen=True, slots=True)
class Claims:
    """Which of the listed boxes have a row, and whether some creation has no id yet. Read after the last page."""

    by_box_id: Mapping[str, Box]
    creation_in_flight: bool

    def unclaimed(self, boxes: Sequence[ProviderBox]) -> list[ProviderBox]:
        """Entries without a row. A row that staff closed without a stop claims nothing any more."""
        return [box for box in boxes if not _claims(self.by_box_id.get(box.id))]


def _claims(row: Box | None) -> bool:
    return row is not None and row.stop_reason != StopReason.FORGOTTEN


def decide_leak(
    box: ProviderBox, known: KnownLeak | None, *, marker: str, creation_in_flight: bool, now: datetime
) -> Leak:
    """What to do about an entry without a row. Pure."""
    owned, age = box.is_named(marker), box.age(now)
    if not owned and creation_in_flight:
        return Leak(box, owned, LeakStep.IGNORE)
    if age is not None and age < YOUNGEST:
        return Leak(box, owned, LeakStep.IGNORE)
    is_down = box.state in DOWN
    if known is not None and known.handled_at is not None:
        if is_down or known.resolution == Resolution.DISMISSED or now - known.handled_at < COMES_DOWN_WITHIN:
            return Leak(box, owned, LeakStep.REPORT)
        return Leak(box, owned, LeakStep.STOP if owned else LeakStep.REPORT, reopens=True)
    return Leak(box, owned, LeakStep.STOP if owned and not is_down else LeakStep.REPORT)


def read_claims(boxes: Sequence[ProviderBox]) -> Claims:
    """The rows of the listed boxes, and whether a reservation has no id. Two queries."""
    ids = [box.id for box in boxes]
    fields = (
        "pk",
        "box_id",
        "stopped_at",
        "stop_reason",
        "undone_sightings",
        "generation",
        "usage_settled_at",
    )
    rows = {str(row.box_id): row for row in Box.objects.filter(box_id__in=ids).only(*fields)} if ids else {}
    return Claims(rows, Box.objects.filter(box_id=None, stopped_at=None).exists())


def read_known(boxes: Sequence[ProviderBox]) -> dict[str, KnownLeak]:
    """What is known already of these boxes as leaks. One query."""
    events = ReconciliationEvent.objects.filter(
        event_type=EventType.LEAK, provider_box_id__in=[box.id for box in boxes]
    )
    return {
        box_id: KnownLeak(handled_at, resolution)
        for box_id, handled_at, resolution in events.values_list(
            "provider_box_id", "handled_at", "resolution"
        )
    }


def report(leaks: Sequence[Leak]) -> None:
    """One event a leak: written at the first sighting, brought up to date at every other. One statement."""
    seen = [leak for leak in leaks if leak.step is not LeakStep.IGNORE]
    if seen:
        _upsert(seen)


def _upsert(leaks: Sequence[Leak]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            insert into box_reconciliation_events as event
                (id, provider_box_id, event_type, reason, details, owned, observed_at, last_seen_at)
            select gen_random_uuid(), seen.box_id, 'leak', %s, seen.details, seen.owned,
                   clock_timestamp(), clock_timestamp()
            from unnest(%s::text[], %s::jsonb[], %s::bool[], %s::bool[]) as seen(box_id, details, owned, reopens)
            on conflict (provider_box_id, event_type) do update set
                details = excluded.details, owned = excluded.owned, last_seen_at = excluded.last_seen_at
            """,
            [REASON, *_columns(leaks)],
        )
        reopened = [leak.box.id for leak in leaks if leak.reopens]
        if reopened:
            cursor.execute(_REOPEN, [reopened])


_REOPEN = """
    update box_reconciliation_events set handled_at = null, handled_by_id = null, resolution = null,
        reopened_at = clock_timestamp()
    where event_type = 'leak' and provider_box_id = any(%s)
"""


def _columns(leaks: Sequence[Leak]) -> list[list[Any]]:
    return [
        [leak.box.id[:200] for leak in leaks],
        [Jsonb(_shown(leak.box)) for leak in leaks],
        [leak.owned for leak in leaks],
        [leak.reopens for leak in leaks],
    ]


def _shown(box: ProviderBox) -> dict[str, Any]:
    return without_nul(dict(box.raw))  # type: ignore[no-any-return]


def without_nul(value: Any) -> Any:
    """The value as PostgreSQL's JSON takes it: a NUL in a text becomes a visible mark."""
    if isinstance(value, str):
        return value.replace("\0", "␀")
    if isinstance(value, dict):
        return {without_nul(str(key)): without_nul(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nul(item) for item in value]
    return value


def note_stop(box_id: str, *, handled: bool) -> None:
    """Note that a stop of the leak was tried, and whether the provider took it."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            update box_reconciliation_events set stop_attempted_at = clock_timestamp(),
                handled_at = case when %(handled)s then clock_timestamp() end,
                resolution = case when %(handled)s then 'stopped' end
            where event_type = 'leak' and provider_box_id = %(box_id)s and handled_at is null
            """,
            {"handled": handled, "box_id": box_id},
        )


def close_gone(boxes: Sequence[ProviderBox]) -> int:
    """Close open leaks that a complete listing does not show any more; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            update box_reconciliation_events set handled_at = clock_timestamp(), resolution = 'gone'
            where event_type = 'leak' and handled_at is null and provider_box_id <> all(%s)
            """,
            [[box.id for box in boxes]],
        )
        return int(cursor.rowcount)
