"""A lock that belongs to a file and dies with the processes that hold it."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from .processes import start_time


@dataclass(frozen=True)
class Holder:
    """Who wrote itself into a lock file. `detached`: it runs for the sake of the server alone."""

    pid: int
    started: int
    detached: bool

    @classmethod
    def current(cls, *, detached: bool) -> Holder:
        return cls(os.getpid(), start_time(os.getpid()) or 0, detached)

    @property
    def is_alive(self) -> bool:
        return start_time(self.pid) == self.started


class LockFile:
    """An exclusive `flock` on `path`. The file stays when the lock is released; only its lock means anything."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Held by this object, and the file was not taken away from under it."""
        return self._descriptor is not None and _is_at(self._descriptor, self.path)

    def acquire(self) -> bool:
        """Try once. True if this object holds the lock now."""
        if self.is_held:
            return True
        self.release()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        if not _is_at(descriptor, self.path):  # the file was replaced between open and lock
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def is_taken(self) -> bool:
        """Whether any process holds the lock. False if the file does not exist."""
        if self.is_held:
            return True
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:  # shared, so that two that ask do not see each other
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def fileno(self) -> int:
        """For handing the lock on to a child: it is held until the last process with this descriptor has ended."""
        assert self._descriptor is not None, "an open lock"
        return self._descriptor

    def sign(self, holder: Holder) -> None:
        """Say who holds the lock."""
        os.ftruncate(self.fileno(), 0)
        os.pwrite(self.fileno(), json.dumps(asdict(holder)).encode(), 0)

    def holder(self) -> Holder | None:
        """Who holds the lock, if it is held and its holder still lives."""
        if not self.is_taken():
            return None
        try:
            holder = Holder(**json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return holder if holder.is_alive else None


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
