"""The money rule, without I/O.

A box is paid for while it is up: from the moment it is ready to the moment its stop is accepted. Each such stretch
counts with the multiplier of the size it ran on. The sum is rounded to whole seconds once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .sizes import SECONDS_PER_DOLLAR


@dataclass(frozen=True)
class Stretch:
    """One time a box was up. Instants in epoch seconds; `ended_at` is None while it still is."""

    started_at: float
    ended_at: float | None
    multiplier: float


@dataclass(frozen=True)
class Usage:
    since: float
    until: float
    seconds: int  # multiplier applied
    running: bool

    @property
    def dollars(self) -> float:
        return round(self.seconds / SECONDS_PER_DOLLAR, 6)


def usage(stretches: Iterable[Stretch], *, since: float, until: float, now: float) -> Usage:
    """What was used between two instants. An `until` in the future, and an open stretch, count up to now."""
    end = min(until, now)
    known = list(stretches)
    seconds = sum(_billable(stretch, since, end) for stretch in known)
    running = any(stretch.ended_at is None for stretch in known)
    return Usage(since=since, until=end, seconds=round(seconds), running=running)


def _billable(stretch: Stretch, since: float, until: float) -> float:
    ended_at = until if stretch.ended_at is None else min(stretch.ended_at, until)
    return max(0.0, ended_at - max(stretch.started_at, since)) * stretch.multiplier
