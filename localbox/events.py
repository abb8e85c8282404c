"""Which moves of a box are events for webhooks."""

from __future__ import annotations

import sqlite3

from . import states
from .store import deliveries
from .store.boxes import BoxRow


def announce(rows: sqlite3.Connection, before: BoxRow, state: str, *, now: float) -> None:
    """Queue the events of a move, inside its transaction. `before` is the row as it was before the move."""
    for event in _events(before, state):
        deliveries.announce(rows, event, before, previous=before.state, state=state, now=now)


def _events(before: BoxRow, state: str) -> tuple[str, ...]:
    if state == states.READY:
        restored = before.saved_at is not None or before.origin_id is not None
        return ("box.ready", "box.hydrated") if restored else ("box.ready",)
    if state == states.ERROR:
        return ("box.error",)
    return ("box.archived",) if state == states.ARCHIVED else ()
