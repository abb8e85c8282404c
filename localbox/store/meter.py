"""The meter's rows: opened when a box is ready, closed when its stop is accepted."""

from __future__ import annotations

import sqlite3

from ..usage import Stretch


def start(connection: sqlite3.Connection, box_id: str, *, at: float, multiplier: float) -> None:
    connection.execute(
        "INSERT INTO stretches (box_id, started_at, multiplier) VALUES (?, ?, ?)", (box_id, at, multiplier)
    )


def stop(connection: sqlite3.Connection, box_id: str, *, at: float) -> None:
    """Close the open stretch, if there is one, never before its start."""
    connection.execute(
        "UPDATE stretches SET ended_at = max(started_at, ?) WHERE box_id = ? AND ended_at IS NULL",
        (at, box_id),
    )


def stretches(connection: sqlite3.Connection, box_id: str) -> list[Stretch]:
    query = "SELECT started_at, ended_at, multiplier FROM stretches WHERE box_id = ? ORDER BY started_at"
    return [Stretch(*record) for record in connection.execute(query, (box_id,)).fetchall()]


def beat(connection: sqlite3.Connection, now: float) -> None:
    """Remember that the boxes which are up were seen up now."""
    connection.execute("UPDATE pulse SET at = ? WHERE only = 1", (now,))


def last_beat(connection: sqlite3.Connection) -> float:
    return float(connection.execute("SELECT at FROM pulse").fetchone()[0])
