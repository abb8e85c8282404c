"""All due runs, once."""

from __future__ import annotations

from base import pump
from base.pump import Counts, Holder
from runs.driver import RunDriver


def run_once(holder: Holder | None = None) -> Counts:
    """Give every due run the one step it needs now, without waiting for news; returns what was claimed and settled."""
    return pump.run_once([RunDriver(waits=False)], holder)
