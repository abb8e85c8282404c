"""The parts of one running provider, wired together."""

from __future__ import annotations

import asyncio
import contextlib

from . import log
from .conductor import Conductor
from .keeper import Keeper
from .lifecycle import Lifecycle
from .recovery import recover
from .runtime.interface import Runtime
from .settings import Settings
from .setup_scripts import SetupScripts
from .specs import spec_of
from .store import boxes
from .store.database import Database
from .webhooks.courier import Courier

CLOSE_SECONDS = 60.0  # how long a clean stop waits for boxes to end


class Provider:
    """Everything behind the API. `open` before the first request, `close` after the last."""

    def __init__(self, settings: Settings, database: Database, runtime: Runtime) -> None:
        self.settings = settings
        self.database = database
        self.runtime = runtime
        self.conductor = Conductor(database, runtime, settings)
        self.lifecycle = Lifecycle(database, self.conductor, settings)
        self._courier = Courier(database, settings)
        self._keeper = Keeper(database, self.conductor, settings)
        self._loops: list[asyncio.Task[None]] = []
        self.conductor.on_event = self._courier.wake
        self.conductor.on_ready = SetupScripts(database, self.conductor).begin

    async def open(self) -> int:
        """Take over the boxes of an earlier life and start the loops; returns how many boxes were adopted."""
        adopted = await recover(self.database, self.conductor, self.runtime, self.settings)
        self._loops = [asyncio.create_task(self._keeper.run()), asyncio.create_task(self._courier.run())]
        return adopted

    async def close(self) -> None:
        """Archive every box. What cannot be ended in CLOSE_SECONDS is ended by the next start."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.lifecycle.archive_all()
        except TimeoutError:
            log.warning("boxes_left_behind", boxes=len(self.conductor.handles))
        for loop in self._loops:
            loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loop

    async def sweep(self) -> int:
        """Archive every box without serving anything; returns how many processes were still left after that."""
        await recover(self.database, self.conductor, self.runtime, self.settings)
        await self.lifecycle.archive_all()
        kept = boxes.with_files(self.database.reader)
        return await self.runtime.sweep([spec_of(row, self.settings) for row in kept])
