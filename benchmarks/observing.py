"""Looking at processes and rows from outside while they work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
import psycopg

from base.embedded_postgres import Connection

MIB = 1 << 20


@dataclass
class Cost:
    """What a process took while it was looked at: `cpu` in percent of one core, `rss` in MiB."""

    cpu: float = 0.0
    rss: float = 0.0


@contextmanager
def cost_of(*pids: int) -> Iterator[Cost]:
    """What these processes and their children take inside the block; memory at its end."""
    cost, started = Cost(), time.monotonic()
    before = _seconds(pids)
    yield cost
    cost.cpu = 100 * (_seconds(pids) - before) / (time.monotonic() - started)
    cost.rss = sum(process.memory_info().rss for process in _family(pids)) / MIB


def _family(pids: tuple[int, ...]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        process = psutil.Process(pid)
        found += [process, *process.children(recursive=True)]
    return found


def _seconds(pids: tuple[int, ...]) -> float:
    times = [process.cpu_times() for process in _family(pids)]
    return sum(spent.user + spent.system for spent in times)


class Looker(threading.Thread):
    """Something that is done again and again until the block is left, on a connection of its own."""

    pause = 0.05

    def __init__(self, database: Connection) -> None:
        super().__init__(daemon=True)
        self.link = psycopg.connect(**database.parameters(), autocommit=True)
        self._over = threading.Event()
        self._broken: Exception | None = None

    def look(self) -> None:
        raise NotImplementedError

    def wait(self) -> None:
        self._over.wait(self.pause)

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self.look()
                self.wait()
        except Exception as error:
            self._broken = error

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self.link.close()
        if self._broken is not None:
            raise self._broken


class Ends(Looker):
    """When each run's end could first be read, woken by the notification of its commit."""

    def __init__(self, database: Connection) -> None:
        super().__init__(database)
        self.at: dict[str, float] = {}
        self.link.execute("listen changed")

    def wait(self) -> None:
        for _ in self.link.notifies(timeout=0.2, stop_after=1):
            pass

    def look(self) -> None:
        ended = self.link.execute(
            "select id::text from box_runs where finished_at is not null and not id::text = any(%s)",
            [list(self.at)],
        ).fetchall()
        now = time.time()
        self.at |= {row[0]: now for row in ended}


@dataclass
class Lateness(Looker):
    """How late due runs are looked at: the longest time that one was due and held by nobody, at each look."""

    database: Connection
    worst: float = 0.0
    seen: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.database)

    def look(self) -> None:
        row = self.link.execute(
            "select coalesce(max(extract(epoch from clock_timestamp() - next_step_at)), 0)::float8 from box_runs"
            " where next_step_at < clock_timestamp() and lease_expires_at is null"
        ).fetchone()
        assert row is not None
        self.seen.append(row[0])
        self.worst = max(self.worst, row[0])

    __hash__ = threading.Thread.__hash__


@dataclass
class Memory:
    """The most that a process and its children held resident while it watched, without git's own."""

    pid: int
    most: int = 0

    def __enter__(self) -> Memory:
        self._over = threading.Event()
        self.before = self.most = self._now()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def grown(self) -> float:
        """In MiB."""
        return (self.most - self.before) / MIB

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.most = max(self.most, self._now())

    def _now(self) -> int:
        main = psutil.Process(self.pid)
        return sum(process.memory_info().rss for process in [main, *main.children()] if _is_ours(process))


def _is_ours(process: psutil.Process) -> bool:
    try:
        return "git" not in process.name()
    except psutil.NoSuchProcess:
        return False
