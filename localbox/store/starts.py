"""Machine starts of the last day, and how many more are allowed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ..errors import ApiError
from ..settings import DAY, Settings
from . import boxes

LONGEST_RETRY_SECONDS = 60  # what a refusal asks a client to wait at most; it may simply ask again


@dataclass(frozen=True)
class Window:
    name: str
    seconds: int
    limit: int


def windows(settings: Settings) -> list[Window]:
    """The windows that are limited; none where no limit is set."""
    chosen = (
        ("minute", 60, settings.starts_per_minute),
        ("hour", 3_600, settings.starts_per_hour),
        ("day", DAY, settings.starts_per_day),
    )
    return [Window(name, seconds, limit) for name, seconds, limit in chosen if limit is not None]


def used(connection: sqlite3.Connection, window: Window, now: float) -> int:
    query = "SELECT count(*) FROM starts WHERE at > ?"
    return int(connection.execute(query, (now - window.seconds,)).fetchone()[0])


def take(connection: sqlite3.Connection, settings: Settings, now: float) -> None:
    """Count one start, or raise ApiError 429: `limit_reached` for too many boxes up, `rate_limited` for too many
    starts in a window. A refused start is not counted."""
    if boxes.count_active(connection) >= settings.max_active_boxes:
        text = f"{settings.max_active_boxes} {'box is' if settings.max_active_boxes == 1 else 'boxes are'} up, which is the limit of this server. Stop one first."
        raise ApiError(429, "limit_reached", text, retry_after=5)
    for window in windows(settings):
        if used(connection, window, now) >= window.limit:
            raise _rate_limited(connection, window, now)
    connection.execute("INSERT INTO starts VALUES (?)", (now,))


def _rate_limited(connection: sqlite3.Connection, window: Window, now: float) -> ApiError:
    query = "SELECT at FROM starts WHERE at > ? ORDER BY at DESC LIMIT 1 OFFSET ?"
    oldest = connection.execute(query, (now - window.seconds, window.limit - 1)).fetchone()["at"]
    wait = min(LONGEST_RETRY_SECONDS, max(1, int(oldest + window.seconds - now) + 1))
    text = f"More than {window.limit} starts in a {window.name}."
    return ApiError(429, "rate_limited", text, retry_after=wait)


def forget_old(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("DELETE FROM starts WHERE at <= ?", (now - DAY,))
