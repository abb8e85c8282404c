"""The setup script of a new box: run once, in the background, after the box is ready."""

from __future__ import annotations

import asyncio
from typing import Any

from . import log
from .conductor import Conductor
from .runtime.interface import BoxHandle, DetachedStatus, RuntimeFault
from .store import boxes
from .store.boxes import BoxRow
from .store.database import Database

SCRIPT_PATH = ".localbox/setup.sh"
COMMAND = f"exec bash {SCRIPT_PATH}"
ERROR_TAIL_BYTES = 500
LONGEST_PAUSE_SECONDS = 2.0


class SetupScripts:
    """Starts and follows setup scripts; `begin` is called for every box that is up, also an adopted one."""

    def __init__(self, database: Database, conductor: Conductor) -> None:
        self._database = database
        self._conductor = conductor
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, row: BoxRow) -> None:
        if row.setup_status not in ("pending", "running"):
            return
        task = asyncio.create_task(self._run(row))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, row: BoxRow) -> None:
        try:
            handle = self._conductor.handles[row.id]
            process_id = row.setup_process_id or await self._start(row, handle)
            if process_id is not None:
                await self._follow(row, handle, process_id)
        except RuntimeFault as fault:
            await self._end(row, f"It could not be run: {fault.message}")
        except Exception:
            log.exception("setup_script_crashed", box=row.id)
            await self._end(row, "The provider lost track of it.")

    async def _start(self, row: BoxRow, handle: BoxHandle) -> int | None:
        """Start it unless an earlier life of the provider did and was killed before it could write that down.

        None when the box was stopped meanwhile.
        """
        process_id = await _find_started(handle) if row.setup_status == "running" else None
        if not await self._change(row, setup_status="running"):
            return None
        if process_id is None:
            await handle.write_file(SCRIPT_PATH, (row.setup_script or "").encode())
            process_id = (await handle.start_detached(COMMAND, cwd=None)).process_id
        await self._change(row, setup_process_id=process_id)
        return process_id

    async def _follow(self, row: BoxRow, handle: BoxHandle, process_id: int) -> None:
        pause = 0.05
        while (status := await self._status(row, handle, process_id)) and status.status == "running":
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 1.5)
        if status:
            await self._end(row, _failure(status))

    async def _status(self, row: BoxRow, handle: BoxHandle, process_id: int) -> DetachedStatus | None:
        """Its status; None once the box is not up any more. A supervisor too busy to answer is asked again."""
        while self._conductor.handles.get(row.id) is handle:
            try:
                return await handle.detached_status(process_id, tail_bytes=ERROR_TAIL_BYTES)
            except RuntimeFault as fault:
                if fault.code != "box_direct_failed":
                    raise
                await asyncio.sleep(LONGEST_PAUSE_SECONDS)
        return None

    async def _end(self, row: BoxRow, failure: str | None) -> None:
        outcome = "done" if failure is None else "failed"
        if await self._change(row, setup_status=outcome, setup_error=failure):
            log.info("setup_script_ended", box=row.id, outcome=outcome)

    async def _change(self, row: BoxRow, **columns: Any) -> bool:
        """Write its progress, unless the box was stopped meanwhile: then that is the outcome, and False."""
        return await self._database.write(lambda rows: boxes.update_setup(rows, row.id, **columns))


async def _find_started(handle: BoxHandle) -> int | None:
    """The process that runs the script, among all that were ever started in this box."""
    process_id = 1
    try:
        while True:
            status = await handle.detached_status(process_id, tail_bytes=1)
            if status.command == COMMAND:
                return process_id
            process_id += 1
    except RuntimeFault as fault:
        if fault.code != "not_found":
            raise
        return None


def _failure(status: DetachedStatus) -> str | None:
    if status.status == "exited" and status.exit_code == 0:
        return None
    if status.status == "lost":
        return "The box lost track of it."
    ending = f"exit code {status.exit_code}" if status.exit_code is not None else f"ended by {status.signal}"
    return f"{ending}: {status.stderr.decode('utf-8', 'replace').strip()}"
