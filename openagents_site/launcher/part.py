"""A process that is meant to run always: when it was started, when it is due again, in which order it stops."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .backoff import Backoff
from .child import Process
from .logs import LogFile


@dataclass
class Part:
    """One process of the installation. Parts of a lower `stop_phase` are stopped first."""

    name: str
    process: Process
    log: LogFile
    stop_phase: int = 0
    stop_seconds: float = 20.0
    starts: int = 0
    started_at: float = 0.0  # time.monotonic()
    due_at: float | None = 0.0  # None while it runs or is not wanted
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def is_running(self) -> bool:
        return self.process.pid is not None

    def ran_seconds(self) -> float:
        return time.monotonic() - self.started_at if self.is_running else 0.0

    def is_due(self) -> bool:
        return self.due_at is not None and time.monotonic() >= self.due_at

    def start(self) -> int | None:
        """Start the process; see `Process.start`."""
        self.starts += 1
        self.started_at = time.monotonic()
        self.due_at = None
        return self.process.start()

    def put_off(self) -> float:
        """The process ended or could not be started: it is due again after the seconds returned."""
        seconds = self.backoff.after_end(time.monotonic() - self.started_at)
        self.due_at = time.monotonic() + seconds
        return seconds
