"""Carries out what rows ask for: one task per box that is in transit, none for a box that is settled.

A request only writes the row (`provisioning`, `cloning`, `archiving`, deleted) and calls `kick`. The conductor does
the work, writes the outcome and looks again, until the row is settled. Because one task at a time handles a box, and
each look starts from the row, it makes no difference whether the work begins after the request or after the next
start of a provider that was killed in between.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable

from . import log, states
from .events import announce
from .runtime.interface import BoxHandle, BoxSpec, Runtime, RuntimeFault
from .settings import Settings
from .sizes import SIZES
from .specs import spec_of
from .store import boxes, deletions, meter
from .store.boxes import BoxRow
from .store.database import Database

STARTS_AT_ONCE = 8  # more would only make each of them slower
FILE_TREES_AT_ONCE = 4  # copies and removals: they keep the disk busy, and must not hold up starts
LONGEST_PAUSE_SECONDS = 60.0


class Conductor:
    """Handles of the boxes that are up, and the tasks of those in transit."""

    def __init__(self, database: Database, runtime: Runtime, settings: Settings) -> None:
        self.handles: dict[str, BoxHandle] = {}
        self.on_ready: Callable[[BoxRow], None] = lambda row: None
        self.on_event: Callable[[], None] = lambda: None
        self._database = database
        self._runtime = runtime
        self._settings = settings
        self._due: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self._file_trees = asyncio.Semaphore(FILE_TREES_AT_ONCE)

    def kick(self, box_id: str) -> None:
        """Look at this box, now or as soon as the present look at it has ended."""
        self._due.add(box_id)
        if box_id not in self._tasks:
            self._tasks[box_id] = asyncio.create_task(self._drive(box_id))

    async def settled(self) -> None:
        """Wait until nothing is in transit."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def run_once(self, box_id: str) -> bool:
        """Take one step for a box; False when its row asks for none."""
        row = boxes.get_even_deleted(self._database.reader, box_id)
        if row is None:
            return False
        step = self._step_for(row)
        if step is None:
            return False
        await step(row)
        return True

    def _step_for(self, row: BoxRow) -> Callable[[BoxRow], Awaitable[None]] | None:
        if row.deleted_at is not None or row.pruned_at is not None:
            return self._remove if row.removed_at is None else None
        if row.state == states.CLONING and not row.copied:
            return self._copy
        if row.state in states.STARTING:
            return self._bring_up
        return self._bring_down if row.state == states.ARCHIVING else None

    async def _drive(self, box_id: str) -> None:
        pause = 1.0
        try:
            while box_id in self._due:
                self._due.discard(box_id)
                try:
                    while await self.run_once(box_id):
                        pause = 1.0
                except Exception:
                    log.exception("box_step_failed", box=box_id, again_in=pause)
                    self._due.add(box_id)
                    await asyncio.sleep(pause)
                    pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
        finally:
            del self._tasks[box_id]

    async def _copy(self, row: BoxRow) -> None:
        origin = boxes.get_even_deleted(self._database.reader, row.origin_id or "")
        if origin is None or origin.removed_at is not None or origin.pruned_at is not None:
            return await self._give_up(row, "The files of the box it was forked from are gone.")
        try:
            async with self._file_trees:
                await self._runtime.remove(self._spec(row))  # what an interrupted copy left
                await self._runtime.copy_home(self._spec(origin), self._spec(row))
        except (RuntimeFault, OSError) as fault:
            return await self._give_up(row, f"Its files could not be copied: {fault}")
        await self._database.write(lambda rows: boxes.update(rows, row.id, copied=1))
        return None

    async def _bring_up(self, row: BoxRow) -> None:
        begun = time.monotonic()
        try:
            async with self._starts:
                handle = await self._runtime.start(self._spec(row))
        except (RuntimeFault, OSError) as fault:
            return await self._give_up(row, f"It could not be started: {fault}")
        self.handles[row.id] = handle
        ready = await self._database.write(lambda rows: self._become_ready(rows, row, handle))
        if ready is None:
            return None  # stopped or deleted meanwhile: the next look ends what was just started
        log.info("box_ready", box=row.id, milliseconds=round((time.monotonic() - begun) * 1000))
        self.on_event()
        self.on_ready(ready)
        return None

    def _become_ready(self, rows: sqlite3.Connection, row: BoxRow, handle: BoxHandle) -> BoxRow | None:
        now = time.time()
        record = boxes.record_text(handle.record)
        if not boxes.move(rows, row.id, states.READY, now=now, supervisor=record, error=None):
            return None
        meter.start(rows, row.id, at=now, multiplier=SIZES[row.size].multiplier)
        announce(rows, row, states.READY, now=now)
        return boxes.get(rows, row.id)

    async def _give_up(self, row: BoxRow, reason: str) -> None:
        """A start that cannot succeed: `error`, which the client sees and may resume, stop or delete."""
        await self._end_processes(row)

        def change(rows: sqlite3.Connection) -> None:
            now = time.time()
            if boxes.move(rows, row.id, states.ERROR, now=now, error=reason, archive_after=None):
                fail_setup(rows, row, "The box could not be started.")
                announce(rows, row, states.ERROR, now=now)

        await self._database.write(change)
        log.warning("box_start_failed", box=row.id, reason=reason)
        self.on_event()

    async def _bring_down(self, row: BoxRow) -> None:
        await self._end_processes(row)

        def change(rows: sqlite3.Connection) -> None:
            now = time.time()
            saved_at = now if row.copied else row.saved_at
            if boxes.move(rows, row.id, states.ARCHIVED, now=now, supervisor=None, saved_at=saved_at):
                fail_setup(rows, row, "The box was stopped before it ended.")
                announce(rows, row, states.ARCHIVED, now=now)

        await self._database.write(change)
        log.info("box_archived", box=row.id)
        self.on_event()

    async def _remove(self, row: BoxRow) -> None:
        await self._database.write(lambda rows: deletions.begin_attempt(rows, row.id))
        try:
            await self._end_processes(row)
            await self._wait_for_copies_of(row)
            async with self._file_trees:
                await self._runtime.remove(self._spec(row))
        except Exception:
            await self._database.write(lambda rows: deletions.block(rows, row.id))
            raise

        def change(rows: sqlite3.Connection) -> None:
            now = time.time()
            boxes.update(rows, row.id, removed_at=now, uid=None, supervisor=None)
            deletions.complete(rows, row.id, now)

        await self._database.write(change)
        log.info("box_removed", box=row.id)

    async def _end_processes(self, row: BoxRow) -> None:
        """End the box by its own supervisor; where that fails or is not there, by looking for what is left."""
        handle = self.handles.pop(row.id, None)
        if handle is not None:
            try:
                return await handle.stop()
            except (RuntimeFault, OSError) as fault:
                log.warning("box_stop_failed", box=row.id, reason=str(fault))
        await self._runtime.sweep([self._spec(row)])
        return None

    async def _wait_for_copies_of(self, row: BoxRow) -> None:
        while forks := boxes.copying_from(self._database.reader, row.id):
            tasks = [self._tasks[fork] for fork in forks if fork in self._tasks]
            if not tasks:
                return
            await asyncio.wait(tasks)

    def _spec(self, row: BoxRow) -> BoxSpec:
        return spec_of(row, self._settings)


def fail_setup(rows: sqlite3.Connection, row: BoxRow, reason: str) -> None:
    """A setup script that has not ended never will."""
    rows.execute(
        "UPDATE boxes SET setup_status = 'failed', setup_error = ? WHERE id = ? AND setup_status IN ('pending', 'running')",
        (reason, row.id),
    )
