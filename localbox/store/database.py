"""One SQLite file, read on the event loop and written by one thread.

A point read takes microseconds and never waits (WAL), so it stays on the loop. A commit waits for the disk
(synchronous=FULL: what was answered survives a power cut), so it runs in the one writer thread; the order of writes
is the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .schema import migrate

T = TypeVar("T")


class Database:
    """Open file of one provider. `reader` must only be used for reading, on the thread that opened it."""

    def __init__(self, path: Path) -> None:
        self._writer = _connect(path, migrate)
        path.chmod(0o600)
        self.reader = _connect(path, _refuse_writes)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="localbox-writer")

    async def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Run `change` in one transaction and return what it returns, once that is on disk.

        Whatever `change` raises is raised here, and nothing of it is kept. A caller that is cancelled meanwhile
        does not undo the change.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transaction, change)

    def _transaction(self, change: Callable[[sqlite3.Connection], T]) -> T:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            result = change(self._writer)
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:  # a failed COMMIT may have ended it already
                self._writer.execute("ROLLBACK")
            raise
        return result

    def close(self) -> None:
        self._thread.shutdown()
        self.reader.close()
        self._writer.close()


def _connect(path: Path, prepare: Callable[[sqlite3.Connection], object]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _configure(connection)
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_writes(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = ON")


def _configure(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 10000")
