"""Idempotency keys: which box a key made, and from which request."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from ..errors import conflict
from . import boxes

LIFETIME_SECONDS = 24 * 3_600
MAXIMUM_LENGTH = 255


def fingerprint(operation: str, body: Mapping[str, Any]) -> str:
    """Equal for requests that parse to the same thing, whatever their spelling."""
    canonical = json.dumps([operation, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def replayed(connection: sqlite3.Connection, key: str, mark: str, now: float) -> boxes.BoxRow | None:
    """The box that this key made with this request, or None if the key is free.

    Raises ApiError `idempotency_key_reused` for another request, and where the box was deleted since: a key makes
    one box, ever.
    """
    query = "SELECT fingerprint, box_id FROM idempotency_keys WHERE key = ? AND created_at > ?"
    found = connection.execute(query, (key, now - LIFETIME_SECONDS)).fetchone()
    if found is None:
        return None
    if found["fingerprint"] != mark:
        raise conflict("idempotency_key_reused", "This Idempotency-Key was used with another request.")
    box = boxes.get(connection, found["box_id"])
    if box is None:
        raise conflict("idempotency_key_reused", "The box that this Idempotency-Key made has been deleted.")
    return box


def remember(connection: sqlite3.Connection, key: str, mark: str, box_id: str, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?, ?, ?)", (key, mark, box_id, now)
    )


def forget_old(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("DELETE FROM idempotency_keys WHERE created_at <= ?", (now - LIFETIME_SECONDS,))
