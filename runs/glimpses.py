"""What many viewers of one run look at: its row and the end of its output, read once for all of them.

A viewer that was woken needs what was committed before the wake. Whoever looks first reads; the others take what it read,
as long as nothing has been heard of the run since that reading began.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from base import connections, wakeups
from runs.log_store import tail_of
from runs.log_text import LogText
from runs.models import Run
from runs.watching import key_of

FRESH_SECONDS = 1.0
"""How long a reading may be taken for the present without a wake, since a wake can be lost."""


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A run as it was at `read_at` (on `time.monotonic`) or later. Shared by threads: nobody changes it."""

    run: Run
    tail: LogText
    read_at: float


@dataclass
class _Shared:
    lock: threading.Lock = field(default_factory=threading.Lock)
    viewers: int = 0
    last: Glimpse | None = None


class Glimpses:
    """The latest look at each run that somebody in this process watches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[UUID, _Shared] = {}

    @contextmanager
    def at(self, run_id: UUID) -> Iterator[Callable[[], Glimpse | None]]:
        """A function that looks at the run; its answer is None if there is no such run. At most one query a look."""
        with self._lock:
            shared = self._shared.setdefault(run_id, _Shared())
            shared.viewers += 1
        try:
            yield lambda: _look(run_id, shared)
        finally:
            with self._lock:
                shared.viewers -= 1
                if not shared.viewers:
                    del self._shared[run_id]


of_this_process = Glimpses()


def _look(run_id: UUID, shared: _Shared) -> Glimpse | None:
    # Whoever holds the lock needs a connection: those who wait for it must not have the last ones of the pool.
    connections.release()
    with shared.lock:
        if shared.last is None or not _is_fresh(shared.last):
            shared.last = _read(run_id)
        return shared.last


def _is_fresh(glimpse: Glimpse) -> bool:
    heard = wakeups.of_this_process.woken_at(key_of(glimpse.run.pk))
    return glimpse.read_at > max(heard, time.monotonic() - FRESH_SECONDS)


def _read(run_id: UUID) -> Glimpse | None:
    read_at = time.monotonic()
    run = Run.objects.defer("command").filter(pk=run_id).first()
    return Glimpse(run, tail_of(run), read_at) if run else None
