"""Waiting for news without polling: one LISTEN connection a process, however many wait.

A waiting view first gives back its database connection (see `wait_until`), then sleeps on an event in memory; the one
listening thread, started by the first waiter, wakes those whose key was notified on the `changed` channel. A wake that was
lost (the listening connection broke) costs at most `LONGEST_NAP_SECONDS`.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
import structlog
from django.db import DatabaseError

from base import connections, notify

log = structlog.get_logger(__name__)
LONGEST_NAP_SECONDS = 5.0
RECONNECT_SECONDS = 1.0


class Wakeups:
    """The waiters of one process, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[str, set[threading.Event]] = defaultdict(set)
        self._woken_at: dict[str, float] = {}
        self._thread: threading.Thread | None = None
        self._link: psycopg.Connection | None = None
        self.is_over = False

    @contextmanager
    def waiting_for(self, key: str) -> Iterator[threading.Event]:
        """An event that is set whenever `key` is notified, from now on."""
        event = threading.Event()
        with self._lock:
            self._waiters[key].add(event)
            self._ensure_listening()
            if self.is_over:
                event.set()
        try:
            yield event
        finally:
            with self._lock:
                self._waiters[key].discard(event)
                if not self._waiters[key]:
                    del self._waiters[key]
                    self._woken_at.pop(key, None)

    def woken_at(self, key: str) -> float:
        """When `key` was last notified while somebody waited for it, on `time.monotonic`; long ago if never."""
        with self._lock:
            return self._woken_at.get(key, float("-inf"))

    def wake(self, key: str) -> None:
        with self._lock:
            if key in self._waiters:
                self._woken_at[key] = time.monotonic()
            for event in self._waiters.get(key, ()):
                event.set()

    def wake_all(self) -> None:
        with self._lock:
            self._woken_at = dict.fromkeys(self._waiters, time.monotonic())
            for events in self._waiters.values():
                for event in events:
                    event.set()

    def dismiss(self) -> None:
        """Let everybody go who waits, and nobody wait any more: the process is asked to end.

        Who waits in a loop looks at `is_over` after it was woken.
        """
        self.is_over = True
        self.wake_all()

    def stop(self) -> None:
        """End the listening thread; the next waiter starts another."""
        with self._lock:
            thread, link, self._thread = self._thread, self._link, None
        if link is not None and not link.closed:
            with suppress(OSError), socket.socket(fileno=os.dup(link.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        if thread is not None:
            thread.join()

    def _ensure_listening(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._listen, name="wakeups", daemon=True)
            self._thread.start()

    def _listen(self) -> None:
        while self._thread is threading.current_thread():
            try:
                with notify.own_connection() as self._link:
                    notify.listen(self._link, [notify.CHANGED])
                    self.wake_all()  # whatever happened before this moment was not heard
                    self._hear(self._link)
            except (psycopg.Error, DatabaseError) as error:
                if self._thread is threading.current_thread():
                    log.warning("wakeups_disconnected", error=type(error).__name__)
                    time.sleep(RECONNECT_SECONDS)

    def _hear(self, link: psycopg.Connection) -> None:
        while self._thread is threading.current_thread():
            for notification in link.notifies(timeout=LONGEST_NAP_SECONDS):
                self.wake(notification.payload)


of_this_process = Wakeups()


def wait_until(key: str, met: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until `met()` is true, asking again at every wake of `key`; at most `seconds`. Returns the last answer.

    While it waits it holds no database connection. In a process that is asked to end (`Wakeups.dismiss`) it does not wait.
    """
    deadline = time.monotonic() + seconds
    with of_this_process.waiting_for(key) as woken:
        while not met():
            left = deadline - time.monotonic()
            if left <= 0 or of_this_process.is_over:
                return False
            connections.release()
            woken.wait(min(left, LONGEST_NAP_SECONDS))
            woken.clear()
        return True
