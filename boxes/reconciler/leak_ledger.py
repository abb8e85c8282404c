"""What is written about leaks: one event a provider box, with its first and its last sighting and how it was handled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import Min
from psycopg.types.json import Jsonb

from boxes.client import ProviderBox
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler.batches import written
from boxes.reconciler.leaks import Claims, KnownLeak, Leak, LeakStep
from boxes.reconciler.rows import rows_of_boxes
from boxes.reconciler.types import Row
from boxes.states import EventType

REASON = "provider_box_without_ledger_claim"
LONGEST_KEY = 200
LONGEST_DETAILS_BYTES = 32_768
KEPT_OF_LONG_DETAILS = ("id", "name", "state", "status", "createdAt", "archiveAfter")
STOPPING_SECONDS = 120  # above the longest stop call, so that only the claim of a dead process ages


def event_key(box_id: str) -> str:
    """What an event is filed under: the provider's id, or an abbreviation of one that is too long to be a key."""
    if len(box_id) <= LONGEST_KEY:
        return box_id
    return f"{box_id[: LONGEST_KEY - 33]}~{hashlib.sha256(box_id.encode()).hexdigest()[:32]}"


def provider_id(leak: ReconciliationEvent) -> str:
    """The id to ask the provider about."""
    said = leak.details.get("id") if isinstance(leak.details, dict) else None
    is_it = isinstance(said, str) and event_key(said) == leak.provider_box_id
    return str(said) if is_it else leak.provider_box_id


def read_claims(boxes: Sequence[ProviderBox], considered: Iterable[Row]) -> Claims:
    """The rows of the listed boxes, and since when a creation is not answered. `considered` rows are not read again."""
    rows = {row.box_id: row for row in considered if row.box_id is not None}
    others = rows_of_boxes([box.id for box in boxes if box.id not in rows])
    rows |= {row.box_id: row for row in others if row.box_id is not None}
    asked_for = Box.objects.filter(box_id=None, stopped_at=None, create_attempts__gt=0)
    return Claims(rows, asked_for.aggregate(since=Min("create_attempted_at"))["since"])


def read_known(boxes: Sequence[ProviderBox]) -> dict[str, KnownLeak]:
    """What is known already of these boxes as leaks, by their ids. At most one query."""
    if not boxes:
        return {}
    ids = {event_key(box.id): box.id for box in boxes}
    with connection.cursor() as cursor:
        cursor.execute(
            "select provider_box_id, handled_at, resolution from box_reconciliation_events"
            " where event_type = %s and provider_box_id = any(%s)",
            [EventType.LEAK, list(ids)],
        )
        return {ids[key]: KnownLeak(handled_at, resolution) for key, handled_at, resolution in cursor}


def report(leaks: Sequence[Leak]) -> None:
    """One event a leak: written at the first sighting, brought up to date at every other. One statement.

    A leak that the provider has ended is handled by that; one that is up again after it was handled is open again.
    """
    seen = [leak for leak in leaks if leak.step is not LeakStep.IGNORE]
    written(
        _REPORT,
        seen,
        lambda leak: (
            event_key(leak.box.id),
            Jsonb(_shown(leak.box)),
            leak.owned,
            leak.reopens,
            leak.is_over,
        ),
    )


_REPORT = f"""
    insert into box_reconciliation_events as event
        (id, provider_box_id, event_type, reason, details, owned, observed_at, last_seen_at,
         reopened_at, handled_at, resolution)
    select gen_random_uuid(), seen.key, 'leak', '{REASON}', seen.details, seen.owned,
           clock_timestamp(), clock_timestamp(), case when seen.reopens then clock_timestamp() end,
           case when seen.is_over then clock_timestamp() end, case when seen.is_over then 'gone' end
    from unnest(%s::text[], %s::jsonb[], %s::bool[], %s::bool[], %s::bool[])
        as seen(key, details, owned, reopens, is_over)
    on conflict (provider_box_id, event_type) do update set
        details = excluded.details, owned = excluded.owned, last_seen_at = excluded.last_seen_at,
        reopened_at = coalesce(excluded.reopened_at, event.reopened_at),
        handled_at = case when excluded.reopened_at is null
            then coalesce(event.handled_at, excluded.handled_at) end,
        handled_by_id = case when excluded.reopened_at is null then event.handled_by_id end,
        resolution = case when excluded.reopened_at is null
            then coalesce(event.resolution, excluded.resolution) end
    returning event.id
"""  # noqa: S608 - a constant of ours


def claim_stops(box_ids: Sequence[str]) -> list[str]:
    """Claim the stop of these leaks; the ids of those that the caller, and nobody else, is to ask the provider for.

    Left out are those that were handled meanwhile, that got a row, or that somebody else is stopping.
    """
    return written(_CLAIM, box_ids, lambda box_id: (event_key(box_id), box_id))


_CLAIM = f"""
    update box_reconciliation_events event set stop_attempted_at = clock_timestamp(),
        stopping_until = clock_timestamp() + make_interval(secs => {STOPPING_SECONDS})
    from unnest(%s::text[], %s::text[]) as wanted(key, box_id)
    where event.event_type = 'leak' and event.provider_box_id = wanted.key and event.handled_at is null
      and (event.stopping_until is null or event.stopping_until < clock_timestamp())
      and not exists (select 1 from conversation_boxes box
                      where box.box_id = wanted.box_id and box.stop_reason is distinct from 'forgotten')
    returning wanted.box_id
"""  # noqa: S608 - a constant of ours


def settle_stops(outcomes: Sequence[tuple[str, bool]]) -> list[str]:
    """Note for each claimed id whether the provider took the stop; the ids of the leaks that are handled by it."""
    return written(_SETTLE, outcomes, lambda outcome: (event_key(outcome[0]), *outcome))


_SETTLE = """
    with done as (
        update box_reconciliation_events event set stopping_until = null,
            handled_at = case when seen.taken then clock_timestamp() end,
            resolution = case when seen.taken then 'stopped' end
        from unnest(%s::text[], %s::text[], %s::bool[]) as seen(key, box_id, taken)
        where event.event_type = 'leak' and event.provider_box_id = seen.key and event.handled_at is null
        returning seen.box_id, seen.taken)
    select box_id from done where taken
"""


def close_gone(unclaimed: Sequence[ProviderBox]) -> int:
    """Close open leaks that a complete listing does not show any more, or whose box has a row by now; how many."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE, [[event_key(box.id) for box in unclaimed]])
        return int(cursor.rowcount)


_CLOSE = """
    update box_reconciliation_events event set handled_at = clock_timestamp(), box_id = coalesce(box.id, event.box_id),
        resolution = case when box.id is null then 'gone' else 'adopted' end
    from box_reconciliation_events leak
    left join conversation_boxes box
        on box.box_id = leak.provider_box_id and box.stop_reason is distinct from 'forgotten'
    where event.id = leak.id and leak.event_type = 'leak' and leak.handled_at is null and event.handled_at is null
      and not exists (select 1 from unnest(%s::text[]) as seen(key) where seen.key = leak.provider_box_id)
"""


def _shown(box: ProviderBox) -> dict[str, Any]:
    """The provider's entry, not longer than anybody reads."""
    shown = dict(box.raw)
    if len(json.dumps(shown, default=str)) <= LONGEST_DETAILS_BYTES:
        return shown
    kept = {name: _bounded(shown[name]) for name in KEPT_OF_LONG_DETAILS if name in shown}
    return kept | {"truncated": True}


def _bounded(value: Any) -> Any:
    return value[:1024] if isinstance(value, str) else value if isinstance(value, int | None) else None
