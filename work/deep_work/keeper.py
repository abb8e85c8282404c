"""Keeping the jobs that a process drives: one thread renews all their leases at once, and learns of what was asked."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from django.db import connection

from work import services
from work.deep_work.stop import Stop, StopReason

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""How soon a request to end is heard of where the wake for it was lost."""

RENEWALS_PER_LEASE = 4


@dataclass
class Kept:
    """A job in hand."""

    generation: int
    stop: Stop = field(repr=False)


class Keeper:
    """Keeps jobs from `add` to `remove`. A job that is somebody else's by now, and one whose end was asked for, are stopped;
    so is every job once the lease could not be renewed for its whole length."""

    def __init__(self, lease_seconds: int) -> None:
        self.lease_seconds = lease_seconds
        self._kept: dict[UUID, Kept] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = self._is_woken = False
        self._renewed_at = time.monotonic()

    def add(self, job_id: UUID, generation: int, stop: Stop) -> None:
        """Keep a job that was claimed just now."""
        with self._changed:
            if not self._kept:
                self._renewed_at = time.monotonic()
            self._kept[job_id] = Kept(generation, stop)
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="jobs-keeper", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, job_id: UUID) -> None:
        with self._changed:
            self._kept.pop(job_id, None)

    def wake(self) -> None:
        """Look at once: something may have been asked for."""
        with self._changed:
            if self._kept:
                self._is_woken = True
                self._changed.notify()

    def stop_all(self, reason: StopReason) -> None:
        with self._changed:
            kept = list(self._kept.values())
        for job in kept:
            job.stop.set(reason)

    def close(self) -> None:
        """End the thread, and its connection with it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _keep(self) -> None:
        try:
            while (kept := self._next()) is not None:
                self._look_at(kept)
        finally:
            connection.close()

    def _next(self) -> dict[UUID, Kept] | None:
        """What is to be looked at now; None at the end. Without a job in hand it waits without a connection."""
        with self._changed:
            if not self._kept and not self._is_closed:
                connection.close()
                self._changed.wait_for(lambda: self._kept or self._is_closed)
            self._changed.wait_for(lambda: self._is_woken or self._is_closed, timeout=LOOK_SECONDS)
            self._is_woken = False
            return None if self._is_closed else dict(self._kept)

    def _look_at(self, kept: dict[UUID, Kept]) -> None:
        try:
            self._tell(kept, self._asked(kept))
        except Exception as error:  # whatever it is: without this thread every job here would be lost
            connection.close()
            log.warning("jobs_not_renewed", jobs=len(kept), error=type(error).__name__)
            if time.monotonic() - self._renewed_at > self.lease_seconds:
                self.stop_all(StopReason.FENCED)

    def _asked(self, kept: dict[UUID, Kept]) -> dict[UUID, bool]:
        """For each job that is still ours, whether its end was asked for; the leases are renewed when it is time."""
        held = [(job_id, job.generation) for job_id, job in kept.items()]
        started = time.monotonic()
        if started - self._renewed_at < self.lease_seconds / RENEWALS_PER_LEASE:
            return services.look_at_held(held)
        answer = services.renew(held, self.lease_seconds)
        self._renewed_at = started
        return answer

    def _tell(self, kept: dict[UUID, Kept], asked: dict[UUID, bool]) -> None:
        for job_id, job in kept.items():
            if job_id not in asked:
                job.stop.set(StopReason.FENCED)
            elif asked[job_id]:
                job.stop.set(StopReason.CANCELLED)
