"""What a pass finds out and decides, before it writes or asks for anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog

from base.clock import database_now
from boxes.client import BoxClient, Listing
from boxes.conf import BoxApi
from boxes.reconciler import breaker, leak_ledger
from boxes.reconciler.decide import decide
from boxes.reconciler.leaks import Claims, Leak, find_leaks
from boxes.reconciler.looks import Looks
from boxes.reconciler.rows import considered_rows, policy_of, versions
from boxes.reconciler.types import Action, Ask, Decision, Leave, Observation, Policy, Row, Seen
from boxes.reconciler.undone import Undone, find_undone

log = structlog.get_logger(__name__)
Progress = Callable[[int, int], object]
LOOKING_SECONDS = 240.0  # after this no further box is asked about; the rest is due in the next pass


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything that one pass decided."""

    listing: Listing
    decisions: Sequence[Decision]
    claims: Claims
    leaks: Sequence[Leak]
    undone: Sequence[Undone]
    policy: Policy
    now: datetime

    @property
    def listed_ids(self) -> set[str]:
        return {box.id for box in self.listing.boxes}

    @property
    def is_suspect(self) -> bool:
        """Whether so many boxes are missing that the first pass to see it writes none of them off."""
        return breaker.absence(self.decisions, self.listed_ids).is_suspect


def survey(
    provider: BoxClient, conf: BoxApi, progress: Progress, on_listed: Callable[[], object] = lambda: None
) -> Survey:
    """Read the list, then the rows, look where a look is needed, and decide about each row and each stranger.

    Writes nothing. Raises ProviderError if the complete list could not be had; `on_listed` is called once it was.
    """
    policy = policy_of(conf)
    before = versions() if policy.evidence == "list" else None
    listing = provider.list_all()
    on_listed()
    rows, now = considered_rows(), database_now()
    listed = {} if before is None else _evidence(listing, rows, before)
    looks = Looks(provider, conf, ends_at=time.monotonic() + LOOKING_SECONDS)
    decisions = _decisions(rows, listed, looks, now, policy, progress)
    claims = leak_ledger.read_claims(listing.boxes, rows)
    known = leak_ledger.read_known(claims.unclaimed(listing.boxes))
    return Survey(
        listing=listing,
        decisions=decisions,
        claims=claims,
        leaks=find_leaks(listing.boxes, claims, known, marker=policy.marker, now=now),
        undone=find_undone(listing.boxes, claims, now),
        policy=policy,
        now=now,
    )


def _evidence(listing: Listing, rows: Sequence[Row], before: Mapping[UUID, int]) -> dict[UUID, Observation]:
    """What the listing shows of rows that did not change since before it was read; of any other it may tell the past."""
    listed = {box.id: box for box in listing.boxes}
    return {
        row.pk: Seen(listed[row.box_id], confirmed=False)
        for row in rows
        if row.box_id in listed and before.get(row.pk) == row.version
    }


def _decisions(
    rows: Sequence[Row],
    listed: Mapping[UUID, Observation],
    looks: Looks,
    now: datetime,
    policy: Policy,
    progress: Progress,
) -> list[Decision]:
    first = [Decision(row, _decided(row, listed.get(row.pk), now, policy)) for row in rows]
    seen = _look(looks, [entry.row for entry in first if isinstance(entry.action, Ask)], progress)
    return [
        Decision(entry.row, _decided(entry.row, seen[str(entry.row.box_id)], now, policy))
        if isinstance(entry.action, Ask)
        else entry
        for entry in first
    ]


def _decided(row: Row, seen: Observation | None, now: datetime, policy: Policy) -> Action:
    try:
        return decide(row, seen, now, policy)
    except Exception:  # a row that nobody foresaw never ends the pass
        log.exception("reconcile_row_failed", box=str(row.pk))
        return Leave("internal error", unanswered=True)


def _look(looks: Looks, rows: Sequence[Row], progress: Progress) -> dict[str, Observation]:
    done = iter(range(1, len(rows) + 1))
    progress(0, len(rows))
    return looks.at([str(row.box_id) for row in rows], lambda: progress(next(done, len(rows)), len(rows)))
