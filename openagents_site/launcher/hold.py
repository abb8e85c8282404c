"""One supervisor for one state folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

from base.embedded_postgres.lockfile import LockFile


class Hold:
    """Held by the running `bin/up`, from before its first process until after its last; a killed one holds it no more."""

    def __init__(self, run_folder: Path) -> None:
        self._lock = LockFile(run_folder / "up.lock")

    def take(self) -> bool:
        """Whether it is ours now."""
        return self._lock.acquire()

    def announce(self, url: str) -> None:
        """Tell whoever comes second where the site is."""
        os.ftruncate(self._lock.fileno(), 0)
        os.pwrite(self._lock.fileno(), json.dumps({"pid": os.getpid(), "url": url}).encode(), 0)

    def holder(self) -> tuple[int, str]:
        """Process and address of the one that holds it; the address is empty while that one is starting."""
        try:
            told = json.loads(self._lock.path.read_text())
            return int(told["pid"]), str(told["url"])
        except (OSError, ValueError, KeyError):
            return 0, ""

    def release(self) -> None:
        os.ftruncate(self._lock.fileno(), 0)
        self._lock.release()
