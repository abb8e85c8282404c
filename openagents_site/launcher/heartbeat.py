"""Finds a scheduler that runs but no longer works.

django-q2 freezes without a sign when one of its idle workers is killed: the dead process held the lock of the queue.
A task of every minute stamps a row; a stamp that grows old while the scheduler runs is the only symptom.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import psycopg

from .part import Part

STALE_SECONDS = 180.0  # three beats
LOOK_SECONDS = 15.0
CONNECT_SECONDS = 5
QUERY = "select extract(epoch from clock_timestamp() - stamped_at) from process_heartbeats where name = %s"


class HeartbeatWatch:
    """Watches the part `name`. Looks at the row from a thread of its own; a database that does not answer proves nothing."""

    def __init__(
        self,
        name: str,
        connection: dict[str, Any],
        stale_seconds: float = STALE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._name = name
        self._connection = {**connection, "connect_timeout": CONNECT_SECONDS}
        self._stale_seconds = stale_seconds
        self._look_seconds = look_seconds
        self._age: float | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._look_always, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def __call__(self, part: Part) -> str | None:
        """Why the part must be restarted, if it must. One that was just started is given the time to stamp."""
        if part.name != self._name or self._age is None:
            return None
        idle_seconds = min(part.ran_seconds(), self._age)
        return f"has done nothing for {idle_seconds:.0f} s" if idle_seconds > self._stale_seconds else None

    def look(self) -> None:
        """Take note of how old the stamp is; one that was never made is as old as can be."""
        try:
            with psycopg.connect(**self._connection, autocommit=True) as link:
                row = link.execute(QUERY, [self._name]).fetchone()
        except psycopg.Error:
            self._age = None
            return
        self._age = math.inf if row is None else float(row[0])

    def _look_always(self) -> None:
        while not self._ended.wait(self._look_seconds):
            self.look()
