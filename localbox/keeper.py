"""The clock of the provider: automatic stops, boxes that died by themselves, and what has been kept long enough."""

from __future__ import annotations

import asyncio
import sqlite3
import time

from . import log
from .conductor import Conductor
from .lifecycle import archive
from .liveness import is_alive
from .settings import Settings
from .store import boxes, keys, meter, starts
from .store.database import Database

TICK_SECONDS = 1.0  # how late an automatic stop may be
BEAT_SECONDS = 5.0  # how much time at most is not charged when provider and box die together
HOUSEKEEPING_SECONDS = 600.0
KEEP_DELETED_SECONDS = 7 * 86_400  # how long a deletion operation can be asked for


class Keeper:
    """One pass a second over the boxes that are up. A pass without anything to do writes nothing."""

    def __init__(self, database: Database, conductor: Conductor, settings: Settings) -> None:
        self._database = database
        self._conductor = conductor
        self._settings = settings
        self._seen: dict[str, float] = {}  # when each box was last seen up
        self._beat_at = 0.0
        self._housekeeping_at = 0.0

    async def run(self) -> None:
        while True:
            try:
                await self.run_once(time.time())
            except Exception:
                log.exception("keeper_pass_failed")
            await asyncio.sleep(TICK_SECONDS)

    async def run_once(self, now: float) -> None:
        await self._stop(boxes.past_their_time(self._database.reader, now), at=dict[str, float](), now=now)
        await self._stop_dead(now)
        if self._conductor.handles and now >= self._beat_at:
            self._beat_at = now + BEAT_SECONDS
            await self._database.write(lambda rows: meter.beat(rows, now))
        if now >= self._housekeeping_at:
            self._housekeeping_at = now + HOUSEKEEPING_SECONDS
            await self.housekeeping(now)

    async def housekeeping(self, now: float) -> None:
        """Drop old keys, starts and deleted boxes, and the files of boxes that have been down for long."""

        def change(rows: sqlite3.Connection) -> list[str]:
            keys.forget_old(rows, now)
            starts.forget_old(rows, now)
            boxes.forget_deleted(rows, now - KEEP_DELETED_SECONDS)
            return boxes.prune(rows, before=now - self._settings.prune_after_seconds, now=now)

        for box_id in await self._database.write(change):
            log.info("box_files_pruned", box=box_id)
            self._conductor.kick(box_id)

    async def _stop_dead(self, now: float) -> None:
        """Archive boxes whose supervisor ended by itself; they are charged until they were last seen up."""
        handles = dict(self._conductor.handles)
        dead = [box_id for box_id, handle in handles.items() if not is_alive(handle.record)]
        for box_id in dead:
            log.warning("box_died", box=box_id)
        await self._stop(dead, at=self._seen, now=now)
        self._seen = dict.fromkeys((box_id for box_id in handles if box_id not in dead), now)

    async def _stop(self, box_ids: list[str], *, at: dict[str, float], now: float) -> None:
        if not box_ids:
            return

        def change(rows: sqlite3.Connection) -> None:
            for box_id in box_ids:
                row = boxes.get(rows, box_id)
                if row is not None:
                    archive(rows, row, at=at.get(box_id, now))

        await self._database.write(change)
        for box_id in box_ids:
            self._conductor.kick(box_id)
