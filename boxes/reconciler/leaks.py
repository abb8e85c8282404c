"""Boxes at the provider that no row claims: which are reported, and which are stopped. Pure functions.

A box of ours always has a row before it has our name, so a box with our name and without a row is a leak; it is stopped. A
box under another name may be somebody else's, or one of ours whose creation is not recorded yet: it is only reported, and
not while it may be one that is being created. A part of a list says nothing about what is missing; this module is only
called with a complete one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from boxes.client import ProviderBox
from boxes.reconciler.types import Row
from boxes.states import DOWN, Resolution, StopReason

YOUNGEST = timedelta(seconds=60)  # a box that the provider says is younger may be about to get its row
COMES_DOWN_WITHIN = timedelta(seconds=300)  # an accepted stop that is not visible after this was undone
CLOCK_DIFFERENCE = timedelta(minutes=5)  # between the provider's clock and ours


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
    """An entry that no row claims, and what is done about it.

    `reopens`: it was handled, and is up again. `is_over`: the provider has ended it, so there is nothing left to handle.
    """

    box: ProviderBox
    owned: bool
    step: LeakStep
    why: str
    reopens: bool = False

    @property
    def is_over(self) -> bool:
        return self.box.is_terminal


@dataclass(frozen=True, slots=True)
class Claims:
    """Which of the listed boxes have a row, read after the last page.

    `creating_since`: when the oldest creation whose answer is not known was first asked for; None without one.
    """

    by_box_id: Mapping[str, Row]
    creating_since: datetime | None

    def unclaimed(self, boxes: Sequence[ProviderBox]) -> list[ProviderBox]:
        """Entries without a row. A row that staff closed without a stop claims nothing any more."""
        return [box for box in boxes if not _claims(self.by_box_id.get(box.id))]


def _claims(row: Row | None) -> bool:
    return row is not None and row.stop_reason != StopReason.FORGOTTEN


def find_leaks(
    boxes: Sequence[ProviderBox],
    claims: Claims,
    known: Mapping[str, KnownLeak],
    *,
    marker: str,
    now: datetime,
) -> list[Leak]:
    """Every listed box without a row, and what to do about it."""
    return [
        decide_leak(box, known.get(box.id), marker=marker, creating_since=claims.creating_since, now=now)
        for box in claims.unclaimed(boxes)
    ]


def decide_leak(
    box: ProviderBox, known: KnownLeak | None, *, marker: str, creating_since: datetime | None, now: datetime
) -> Leak:
    """What to do about an entry without a row."""
    owned, age = box.is_named(marker), box.age(now)
    if not owned and _may_be_being_created(box, creating_since):
        return Leak(box, owned, LeakStep.IGNORE, "it may be one that is being created")
    if age is not None and age < YOUNGEST:
        return Leak(box, owned, LeakStep.IGNORE, "too young to tell")
    if known is not None and known.handled_at is not None:
        return _handled_before(box, owned, known.handled_at, known.resolution, now)
    return _open(box, owned)


def _may_be_being_created(box: ProviderBox, creating_since: datetime | None) -> bool:
    if creating_since is None:
        return False
    return box.created_at is None or box.created_at >= creating_since - CLOCK_DIFFERENCE


def _handled_before(
    box: ProviderBox, owned: bool, handled_at: datetime, resolution: str | None, now: datetime
) -> Leak:
    if box.state in DOWN:
        return Leak(box, owned, LeakStep.REPORT, "handled, and down")
    if resolution == Resolution.DISMISSED:
        return Leak(box, owned, LeakStep.REPORT, "dismissed by staff")
    if resolution == Resolution.STOPPED and now - handled_at < COMES_DOWN_WITHIN:
        return Leak(box, owned, LeakStep.REPORT, "stopped a moment ago")
    step = LeakStep.STOP if owned else LeakStep.REPORT
    return Leak(box, owned, step, "it was handled, and is up again", reopens=True)


def _open(box: ProviderBox, owned: bool) -> Leak:
    if box.state in DOWN:
        return Leak(box, owned, LeakStep.REPORT, f"no row claims it; it is {box.raw_state} already")
    if owned:
        return Leak(box, owned, LeakStep.STOP, "it has our name, and no row claims it")
    return Leak(box, owned, LeakStep.REPORT, "no row claims it; its name is not ours")
