"""The durable queue of webhook deliveries. A row is there until it was delivered, or given up."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from .. import ids
from ..dialects import DIALECTS
from ..times import iso
from . import webhooks
from .boxes import BoxRow

MAXIMUM_ATTEMPTS = 8


@dataclass(frozen=True)
class Delivery:
    seq: int
    event_id: str
    webhook_id: str
    event: str
    body: str
    attempts: int  # this one included
    next_at: float


def announce(
    connection: sqlite3.Connection, event: str, box: BoxRow, *, previous: str, state: str, now: float
) -> None:
    """Queue an event for every webhook that asked for it, in the transaction that made it true."""
    event_id = ids.event_id()
    for webhook in webhooks.every(connection):
        if event in webhook.events:
            _queue(connection, webhook, event_id, event, box, previous=previous, state=state, now=now)


def _queue(
    connection: sqlite3.Connection,
    webhook: webhooks.Webhook,
    event_id: str,
    event: str,
    box: BoxRow,
    *,
    previous: str,
    state: str,
    now: float,
) -> None:
    dialect = DIALECTS[webhook.dialect]
    data = {dialect.noun: {"id": box.id, "name": box.name}, "previousState": previous, "state": state}
    body = json.dumps({"id": event_id, "type": dialect.kind(event), "createdAt": iso(now), "data": data})
    connection.execute(
        "INSERT INTO deliveries (event_id, webhook_id, event, body, next_at) VALUES (?, ?, ?, ?, ?)",
        (event_id, webhook.id, dialect.kind(event), body, now),
    )


def waiting(
    connection: sqlite3.Connection, webhook_id: str, *, besides: Collection[int], limit: int
) -> list[Delivery]:
    """The next deliveries of one webhook, due or not, the earliest first, without those under way."""
    query = "SELECT * FROM deliveries WHERE webhook_id = ? ORDER BY next_at LIMIT ?"
    found = connection.execute(query, (webhook_id, limit + len(besides))).fetchall()
    rest = [delivery for delivery in itertools.starmap(Delivery, found) if delivery.seq not in besides]
    return rest[:limit]


def claim(connection: sqlite3.Connection, seq: int, *, again_at: float) -> Delivery | None:
    """Count one attempt before it is made, so that a killed provider repeats it later, and not for ever.

    None when it is gone, or had its last attempt: then it is dropped.
    """
    connection.execute("DELETE FROM deliveries WHERE seq = ? AND attempts >= ?", (seq, MAXIMUM_ATTEMPTS))
    connection.execute(
        "UPDATE deliveries SET attempts = attempts + 1, next_at = ? WHERE seq = ?", (again_at, seq)
    )
    found = connection.execute("SELECT * FROM deliveries WHERE seq = ?", (seq,)).fetchone()
    return Delivery(*found) if found else None


def done(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("DELETE FROM deliveries WHERE seq = ?", (seq,))
