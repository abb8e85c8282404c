"""Where the database is used from. A job's own thread spends its time waiting for the model, and holds no connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from django.db import close_old_connections, connections

from base import connections as held

T = TypeVar("T")


class Ledger(Protocol):
    """Runs what uses the database."""

    def __call__(self, work: Callable[[], T]) -> T:
        """What `work()` returns or raises."""
        ...


class InThisThread:
    """Uses this thread's connection and gives it back after each use."""

    def __call__(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            held.release()


class Clerks:
    """A few threads with a lasting connection each, for any number of jobs."""

    def __init__(self, number: int = 4) -> None:
        self._number = number
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="jobs-ledger")

    def __call__(self, work: Callable[[], T]) -> T:
        return self._pool.submit(_fresh, work).result()

    def close(self) -> None:
        """Close the connections; nothing may be asked of them afterwards."""
        all_of_them = threading.Barrier(self._number)

        def leave() -> None:
            all_of_them.wait()
            connections.close_all()

        for left in [self._pool.submit(leave) for _ in range(self._number)]:
            left.result()
        self._pool.shutdown()


def _fresh(work: Callable[[], T]) -> T:
    close_old_connections()
    return work()
