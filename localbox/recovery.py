"""What a provider does first: find out what became of the boxes of its earlier life.

A box that was up and whose supervisor is still there is adopted, with its running commands. One whose supervisor is
gone becomes archived with its files, and is charged until the provider last saw it up (it notes that every few
seconds): time that nobody can vouch for is not charged. Whatever was half done, a start, a copy, a stop or a
deletion, is taken up again from its row, after any process that such a start may have left was ended.
"""

from __future__ import annotations

import asyncio
import sqlite3

from . import log, states
from .conductor import Conductor
from .lifecycle import archive
from .runtime.interface import BoxHandle, Runtime, RuntimeFault
from .settings import Settings
from .specs import spec_of
from .store import boxes, meter
from .store.boxes import BoxRow
from .store.database import Database

ADOPTIONS_AT_ONCE = 32


async def recover(database: Database, conductor: Conductor, runtime: Runtime, settings: Settings) -> int:
    """Adopt or end every box of the earlier life; returns how many were adopted."""
    up = boxes.in_states(database.reader, (states.READY,))
    gate = asyncio.Semaphore(ADOPTIONS_AT_ONCE)

    async def adopt(row: BoxRow) -> bool:
        async with gate:
            return await _adopt(row, conductor, runtime, settings)

    adopted = await asyncio.gather(*(adopt(row) for row in up))
    lost = [row for row, found in zip(up, adopted, strict=True) if not found]
    await _archive_lost(database, lost)
    unsettled = [*boxes.in_states(database.reader, states.TRANSIT), *boxes.leaving(database.reader)]
    await _sweep(runtime, [row for row in unsettled if row.id not in conductor.handles], settings)
    for row in unsettled:
        conductor.kick(row.id)
    for row, found in zip(up, adopted, strict=True):
        if found:
            conductor.on_ready(row)
    return sum(adopted)


async def _adopt(row: BoxRow, conductor: Conductor, runtime: Runtime, settings: Settings) -> bool:
    handle = await _found(row, runtime, settings)
    if handle is None:
        log.warning("box_not_adopted", box=row.id)
        return False
    conductor.handles[row.id] = handle
    log.info("box_adopted", box=row.id)
    return True


async def _found(row: BoxRow, runtime: Runtime, settings: Settings) -> BoxHandle | None:
    if row.supervisor is None:
        return None
    try:
        return await runtime.adopt(spec_of(row, settings), row.supervisor)
    except (RuntimeFault, OSError) as fault:
        log.warning("adoption_failed", box=row.id, reason=str(fault))
        return None


async def _archive_lost(database: Database, lost: list[BoxRow]) -> None:
    def change(rows: sqlite3.Connection) -> None:
        last_seen = meter.last_beat(rows)
        for row in lost:
            archive(rows, row, at=last_seen)

    if lost:
        await database.write(change)


async def _sweep(runtime: Runtime, rows: list[BoxRow], settings: Settings) -> None:
    if not rows:
        return None
    try:
        ended = await runtime.sweep([spec_of(row, settings) for row in rows])
    except (RuntimeFault, OSError) as fault:  # the conductor tries again, box by box
        return log.warning("leftovers_not_ended", boxes=len(rows), reason=str(fault))
    return log.info("leftovers_ended", boxes=len(rows), processes=ended)
