"""Deletion operations: what a client polls after a DELETE."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .. import ids


@dataclass(frozen=True)
class Deletion:
    id: str
    box_id: str
    status: str
    attempts: int
    requested_at: float
    completed_at: float | None


def insert(connection: sqlite3.Connection, box_id: str, now: float) -> Deletion:
    deletion = Deletion(ids.deletion_id(), box_id, "pending", 0, now, None)
    connection.execute(
        "INSERT INTO deletions (id, box_id, status, requested_at) VALUES (?, ?, ?, ?)",
        (deletion.id, box_id, deletion.status, now),
    )
    return deletion


def get(connection: sqlite3.Connection, deletion_id: str) -> Deletion | None:
    found = connection.execute("SELECT * FROM deletions WHERE id = ?", (deletion_id,)).fetchone()
    return Deletion(*found) if found else None


def of_box(connection: sqlite3.Connection, box_id: str) -> Deletion | None:
    found = connection.execute("SELECT * FROM deletions WHERE box_id = ?", (box_id,)).fetchone()
    return Deletion(*found) if found else None


def begin_attempt(connection: sqlite3.Connection, box_id: str) -> None:
    connection.execute(
        "UPDATE deletions SET status = 'processing', attempts = attempts + 1 WHERE box_id = ? AND completed_at IS NULL",
        (box_id,),
    )


def block(connection: sqlite3.Connection, box_id: str) -> None:
    """An attempt failed and will be repeated."""
    connection.execute(
        "UPDATE deletions SET status = 'blocked' WHERE box_id = ? AND completed_at IS NULL", (box_id,)
    )


def complete(connection: sqlite3.Connection, box_id: str, now: float) -> None:
    connection.execute(
        "UPDATE deletions SET status = 'completed', completed_at = ? WHERE box_id = ? AND completed_at IS NULL",
        (now, box_id),
    )
