"""The pump: drives rows that are due, for every app that registered a driver.

A driver knows one kind of row. `claim` takes due rows set-wise under a lease; `perform` talks to the outside, in a thread,
and never touches the database; `settle` writes a batch of outcomes, fenced by generation. The pump moves tasks between the
three, one thread pool a driver, so that a slow kind never holds up another.

Delivery is at least once: a worker that dies leaves its leases to the next. What must not happen twice is guarded by the
driver (an idempotency key, a once-only guard at the far end, a generation in every WHERE).

Tasks take seconds; a driver whose tasks take minutes is a `LongDriver`.
"""

from __future__ import annotations

import os
import queue
import select
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import psycopg
import structlog
from django.db import InterfaceError, OperationalError, close_old_connections

from base import measures

log = structlog.get_logger(__name__)
LONGEST_SLEEP_SECONDS = 1.0  # covers every lost wake
IDLE_SECONDS = 3.0  # the same for a driver that has no row at all that will be due
SETTLE_PAUSE_SECONDS = 0.003  # after a wake: lets outcomes gather, so that they are settled in one batch


@dataclass(frozen=True)
class Holder:
    """Who claims. `owner` is the worker's number, or None for one without a sign of life; see `base.leases`."""

    owner: int | None = None
    lease_seconds: int = 60


@dataclass(frozen=True)
class Outcome:
    """What became of a task: what `perform` returned, or what it raised."""

    task: Any
    answer: Any = None
    error: Exception | None = None


class Driver(Protocol):
    """One kind of due row. Methods other than `perform` run in the pump's main thread, and may use the database."""

    name: str
    slots: int  # how many tasks may be in flight at once

    def claim(self, holder: Holder, limit: int) -> Sequence[Any]:
        """At most `limit` due rows, leased to `holder`, each as a self-contained task."""
        ...

    def perform(self, task: Any) -> Any:
        """The one outside step that the task needs now. May raise: the error is the outcome."""
        ...

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """Write the outcomes, each only if the task's generation is still the row's, and release the leases."""
        ...

    def seconds_until_due(self) -> float | None:
        """Until the next row that nobody holds is due; None if there is none."""
        ...


@runtime_checkable
class LongDriver(Protocol):
    """What a driver has besides if its tasks take minutes: they end with the worker process, not before it.

    `perform` may use the database, and the driver renews the leases of what it drives.
    """

    is_long: bool

    def leave(self) -> None:
        """Have every task end soon, its row given back; claim nothing more."""
        ...

    def close(self) -> None:
        """Called once no task is in flight: what the driver keeps open ends."""
        ...


@runtime_checkable
class ReadingDriver(Protocol):
    """What a driver has besides if some of its tasks only look: a worker that stops does not wait for their answers."""

    def only_looks(self, task: Any) -> bool:
        """Whether nothing is lost with the answer of this task."""
        ...

    def give_back(self, tasks: Sequence[Any]) -> None:
        """Have others take up the rows of these tasks at once. Their answers will not be settled."""
        ...


def quick(drivers: Sequence[Driver]) -> list[Driver]:
    """The drivers whose tasks take seconds."""
    return [driver for driver in drivers if not isinstance(driver, LongDriver)]


@dataclass
class Counts:
    """What one round did."""

    claimed: int = 0
    settled: int = 0
    failed: int = 0


def run_once(drivers: Sequence[Driver], holder: Holder | None = None, *, limit: int = 10_000) -> Counts:
    """Claim everything that is due now (at most `limit` rows a driver), perform it, settle it.

    Rows that become due by that wait for the next call.
    """
    holder = holder or Holder()
    counts = Counts()
    for driver in drivers:
        tasks = driver.claim(holder, limit)
        if not tasks:
            continue
        _count_claimed(driver, tasks, counts)
        with ThreadPoolExecutor(min(driver.slots, len(tasks)), thread_name_prefix=driver.name) as pool:
            outcomes = list(pool.map(lambda task, driver=driver: perform(driver, task), tasks))
        settle(driver, holder, outcomes, counts)
    return counts


def perform(driver: Driver, task: Any) -> Outcome:
    """The task's outcome; an exception is one."""
    try:
        return Outcome(task, answer=driver.perform(task))
    except Exception as error:
        return Outcome(task, error=error)


def settle(driver: Driver, holder: Holder, outcomes: Sequence[Outcome], counts: Counts) -> None:
    """Settle as one batch; if that fails, one by one, so that a bad row costs only itself.

    A row that cannot be settled keeps its lease and is taken up again when that ends. Errors of the connection are
    raised: the process ends and is started anew.
    """
    try:
        driver.settle(holder, outcomes)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        if len(outcomes) == 1:
            log.exception("settle_failed", driver=driver.name, task=str(outcomes[0].task)[:200])
            counts.failed += 1
            measures.TASKS.labels(driver.name, "failed").inc()
            return
        for outcome in outcomes:
            settle(driver, holder, [outcome], counts)
        return
    counts.settled += len(outcomes)
    measures.TASKS.labels(driver.name, "settled").inc(len(outcomes))


def _count_claimed(driver: Driver, tasks: Sequence[Any], counts: Counts) -> None:
    counts.claimed += len(tasks)
    measures.TASKS.labels(driver.name, "claimed").inc(len(tasks))


class Pump:
    """The endless form, for a worker process. `link` is its own connection, already listening."""

    def __init__(self, drivers: Sequence[Driver], holder: Holder, link: psycopg.Connection) -> None:
        self.drivers, self.holder, self.link = drivers, holder, link
        self.counts = Counts()
        self._pools = {
            driver.name: ThreadPoolExecutor(driver.slots, thread_name_prefix=driver.name)
            for driver in drivers
        }
        self._in_flight = {driver.name: 0 for driver in drivers}
        self._ask_at = {driver.name: 0.0 for driver in drivers}  # on the monotonic clock
        self._looking: dict[int, tuple[ReadingDriver, Any]] = {}  # in flight, and nobody has to wait for them
        self._done: queue.SimpleQueue[tuple[Driver, Outcome]] = queue.SimpleQueue()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)

    def step(self) -> bool:
        """Settle what is done, start what is due. Returns whether anything was."""
        settled = self._settle_done()
        started = self._start_due()
        return settled or started

    def wait(self) -> None:
        """Sleep until an outcome, a wake, or the next due row; a second at most."""
        ready, _, _ = select.select([self._woken, self.link.fileno()], [], [], self._sleep_seconds())
        if self._woken in ready:
            _drain(self._woken)
            time.sleep(SETTLE_PAUSE_SECONDS)
        if self.link.fileno() in ready:
            for notification in self.link.notifies(timeout=0):
                self._ask_soon(notification.payload)
        close_old_connections()

    def wake(self) -> None:
        """End a `wait` early; may be called from a thread or a signal handler."""
        try:
            os.write(self._wake, b"x")
        except BlockingIOError:
            return  # the pipe is full: it will wake

    def drain(self, seconds: float) -> int:
        """Start nothing more and settle what is in flight, for at most `seconds`; what only looks is not waited for.
        Returns how many were left."""
        deadline = time.monotonic() + seconds
        long = [driver for driver in self.drivers if isinstance(driver, LongDriver)]
        for driver in long:
            driver.leave()
        while self.in_flight > len(self._looking) and time.monotonic() < deadline:
            if not self._settle_done():
                select.select([self._woken], [], [], 0.1)
                _drain(self._woken)
        self._give_back()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        for driver in long:
            if not self._in_flight[driver.name]:
                driver.close()
        return self.in_flight

    def _give_back(self) -> None:
        drivers = {id(driver): driver for driver, _ in self._looking.values()}
        for driver in drivers.values():
            driver.give_back([task for owner, task in self._looking.values() if owner is driver])

    @property
    def in_flight(self) -> int:
        return sum(self._in_flight.values())

    def _start_due(self) -> bool:
        started = False
        for driver in self.drivers:
            started = self._start_due_of(driver) or started
        return started

    def _start_due_of(self, driver: Driver) -> bool:
        """Ask a driver only when it may have something: each question is a statement or two, and most wakes are another's."""
        room = driver.slots - self._in_flight[driver.name]
        if room <= 0 or time.monotonic() < self._ask_at[driver.name]:
            return False
        tasks = driver.claim(self.holder, room)
        self._in_flight[driver.name] += len(tasks)
        if tasks:
            _count_claimed(driver, tasks, self.counts)
        for task in tasks:
            if isinstance(driver, ReadingDriver) and driver.only_looks(task):
                self._looking[id(task)] = driver, task
            self._pools[driver.name].submit(self._perform, driver, task)
        seconds = driver.seconds_until_due()
        pause = IDLE_SECONDS if seconds is None else min(seconds, LONGEST_SLEEP_SECONDS)
        self._ask_at[driver.name] = time.monotonic() + pause
        return bool(tasks)

    def _ask_soon(self, name: str) -> None:
        """The driver with this name may have something now; any driver, if there is none of that name."""
        for known in [name] if name in self._ask_at else self._ask_at:
            self._ask_at[known] = 0.0

    def _perform(self, driver: Driver, task: Any) -> None:
        self._done.put((driver, perform(driver, task)))
        self.wake()

    def _settle_done(self) -> bool:
        batches: dict[str, list[Outcome]] = {}
        by_name: dict[str, Driver] = {}
        while True:
            try:
                driver, outcome = self._done.get_nowait()
            except queue.Empty:
                break
            batches.setdefault(driver.name, []).append(outcome)
            by_name[driver.name] = driver
            self._looking.pop(id(outcome.task), None)
        for name, outcomes in batches.items():
            self._in_flight[name] -= len(outcomes)
            self._ask_soon(name)
            settle(by_name[name], self.holder, outcomes, self.counts)
        return bool(batches)

    def _sleep_seconds(self) -> float:
        asked = [
            self._ask_at[driver.name]
            for driver in self.drivers
            if self._in_flight[driver.name] < driver.slots
        ]
        return max(0.0, min([LONGEST_SLEEP_SECONDS, *(moment - time.monotonic() for moment in asked)]))


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        return
