"""What a pass noticed about boxes of ours: one event a box and kind, with its first and its last sighting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from boxes.reconciler.batches import written
from boxes.states import EventType, Resolution


@dataclass(frozen=True, slots=True)
class Sighting:
    """One thing noticed of one box. `resolution`: how it was handled, where noticing it was handling it."""

    box_pk: UUID
    box_id: str
    event_type: EventType
    reason: str
    details: dict[str, Any]
    resolution: Resolution | None = None


def record(sightings: Sequence[Sighting]) -> None:
    """Write or bring up to date; an event that was handled is open again when it is seen again. One statement."""
    written(
        _RECORD,
        sightings,
        lambda sighting: (
            sighting.box_pk,
            sighting.box_id,
            str(sighting.event_type),
            sighting.reason[:128],
            Jsonb(sighting.details),
            str(sighting.resolution) if sighting.resolution else None,
        ),
    )


_RECORD = """
    insert into box_reconciliation_events as event
        (id, provider_box_id, event_type, reason, details, owned, box_id, observed_at, last_seen_at,
         handled_at, resolution)
    select gen_random_uuid(), seen.box_id, seen.event_type, seen.reason, seen.details, true, seen.pk,
           clock_timestamp(), clock_timestamp(),
           case when seen.resolution is not null then clock_timestamp() end, seen.resolution
    from unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::jsonb[], %s::text[])
        as seen(pk, box_id, event_type, reason, details, resolution)
    on conflict (provider_box_id, event_type) do update set
        reason = excluded.reason, details = excluded.details, last_seen_at = excluded.last_seen_at,
        reopened_at = case when event.handled_at is not null then excluded.last_seen_at
                           else event.reopened_at end,
        handled_at = excluded.handled_at, handled_by_id = null, resolution = excluded.resolution
    returning event.id
"""
