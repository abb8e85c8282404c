"""Telling a job's thread that its work is to end before its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum


class StopReason(StrEnum):
    CANCELLED = "cancelled"  # the end was asked for: the rows say so
    FENCED = "fenced"  # somebody else holds the job now: nothing more may be written
    LEAVING = "leaving"  # this process ends: the job is given back as it stands
    ABANDONED = "abandoned"  # nobody waits for this any more


class Stopped(Exception):
    """What was waited for was left, because of a stop."""


class Stop:
    """Set at most once, from any thread; whoever waits learns of it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self.reason: StopReason | None = None

    def set(self, reason: StopReason) -> None:
        """The first reason stands, unless the job is found to be somebody else's: that goes before all others."""
        with self._lock:
            if self.reason is None or reason == StopReason.FENCED:
                self.reason = reason
            self._event.set()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep for so long, or until it is set; returns whether it is."""
        return self._event.wait(max(0.0, seconds))

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener` when it is set; at once if it is."""
        with self._lock:
            self._listeners.append(listener)
        if self.is_set:
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
