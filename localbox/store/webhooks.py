"""Rows of webhooks."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from .. import ids
from ..errors import conflict

MAXIMUM = 10


@dataclass(frozen=True)
class Webhook:
    seq: int
    id: str
    name: str | None
    url: str
    events: tuple[str, ...]
    dialect: str
    secret: str
    created_at: float
    updated_at: float


def _row(record: sqlite3.Row) -> Webhook:
    values: dict[str, Any] = dict(record)
    values["events"] = tuple(json.loads(values["events"]))
    return Webhook(**values)


def every(connection: sqlite3.Connection) -> list[Webhook]:
    return [_row(record) for record in connection.execute("SELECT * FROM webhooks ORDER BY seq").fetchall()]


def get(connection: sqlite3.Connection, webhook_id: str) -> Webhook | None:
    found = connection.execute("SELECT * FROM webhooks WHERE id = ?", (webhook_id,)).fetchone()
    return _row(found) if found else None


def insert(
    connection: sqlite3.Connection,
    *,
    name: str | None,
    url: str,
    events: tuple[str, ...],
    dialect: str,
    now: float,
) -> Webhook:
    """A new webhook with a new secret. Raises ApiError 409 for a URL that has one, and beyond the tenth."""
    known = every(connection)
    if len(known) >= MAXIMUM:
        raise conflict("webhook_limit", f"There are {MAXIMUM} webhooks already; delete one first.")
    _refuse_double(known, url, but=None)
    connection.execute(
        "INSERT INTO webhooks (id, name, url, events, dialect, secret, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (ids.webhook_id(), name, url, json.dumps(events), dialect, ids.webhook_secret(), now, now),
    )
    return every(connection)[-1]


def change(connection: sqlite3.Connection, webhook_id: str, now: float, **columns: Any) -> Webhook | None:
    """Change columns; None if there is no such webhook."""
    if "url" in columns:
        _refuse_double(every(connection), columns["url"], but=webhook_id)
    if "events" in columns:
        columns["events"] = json.dumps(columns["events"])
    changes = ", ".join(f"{name} = ?" for name in ("updated_at", *columns))
    query = f"UPDATE webhooks SET {changes} WHERE id = ?"  # noqa: S608 - names are ours
    connection.execute(query, (now, *columns.values(), webhook_id))
    return get(connection, webhook_id)


def rotate(connection: sqlite3.Connection, webhook_id: str, now: float) -> Webhook | None:
    return change(connection, webhook_id, now, secret=ids.webhook_secret())


def delete(connection: sqlite3.Connection, webhook_id: str) -> bool:
    """Delete it, and whatever was still to be delivered to it; False if there is no such webhook."""
    return connection.execute("DELETE FROM webhooks WHERE id = ?", (webhook_id,)).rowcount == 1


def _refuse_double(known: list[Webhook], url: str, *, but: str | None) -> None:
    if any(webhook.url == url and webhook.id != but for webhook in known):
        raise conflict("webhook_exists", "There is a webhook with this URL already.")
