"""Where the database is used from. A job's own thread spends its time waiting for the model, and holds no connection."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from django.db import close_old_connections, connections

from base import connections as held

T = TypeVar("T")


class Ledger(Protocol):
    """Runs what uses the database."""

    def __call__(self, work: Callable[[], T]) -> T:
        """What `work()` returns or raises."""
        ...

    def take_turn(self) -> None:
        """What this thread asks for from now on comes after what other threads took their turns for before, and before all else."""
        ...


class InThisThread:
    """Uses this thread's connection and gives it back after each use."""

    def __call__(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            held.release()

    def take_turn(self) -> None:
        """Nobody else waits here."""


@dataclass(order=True)
class _Asked:
    """A piece of work, by whose turn it is and then as it came."""

    turn: int
    number: int
    work: Callable[[], Any] | None = field(compare=False)
    answer: Future[Any] = field(compare=False, default_factory=Future)


class Clerks:
    """A few threads with a lasting connection each, for any number of jobs.

    Jobs are served one after the other, not all a little: where the answers of fifty models come at once, the first job is through
    with its five writes, and has its model at work again, while the last one waits. Served in the order of their writes they would all
    be through at the end, and then nothing but wait for their models.
    """

    def __init__(self, number: int = 4) -> None:
        self._asked: queue.PriorityQueue[_Asked] = queue.PriorityQueue()
        self._numbers = itertools.count(1)
        self._of_this_thread = threading.local()
        self._threads = [
            threading.Thread(target=self._serve, name=f"jobs-ledger-{index}", daemon=True)
            for index in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, work: Callable[[], T]) -> T:
        if not hasattr(self._of_this_thread, "turn"):
            self.take_turn()
        asked = _Asked(self._of_this_thread.turn, next(self._numbers), work)
        self._asked.put(asked)
        result: T = asked.answer.result()
        return result

    def take_turn(self) -> None:
        self._of_this_thread.turn = next(self._numbers)

    def close(self) -> None:
        """Close the connections, once everything asked for is done; nothing may be asked of them afterwards."""
        for _ in self._threads:
            number = next(self._numbers)
            self._asked.put(_Asked(number, number, None))
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (asked := self._asked.get()).work is not None:
            _carry_out(asked.work, asked.answer)
            del asked  # it holds a job's rows
        connections.close_all()


def _carry_out(work: Callable[[], Any], answer: Future[Any]) -> None:
    try:
        close_old_connections()
        answer.set_result(work())
    except BaseException as error:
        answer.set_exception(error)
