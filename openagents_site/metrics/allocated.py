"""Files of counters that have their room on the disk before anything is written.

The library of metrics maps files that have holes. A write into a hole of a full disk ends the process with SIGBUS, whatever it
was doing; here room is asked for first, and where there is none the process goes on counting in its own memory.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
from pathlib import Path
from typing import BinaryIO

import prometheus_client.values
from prometheus_client.mmap_dict import MmapedDict

FIRST_BYTES = 1 << 16
MOST_BESIDE_KEY_BYTES = 40
"""What an entry takes beside its key: its length, the alignment and two numbers."""

log = logging.getLogger(__name__)


class AllocatedDict(MmapedDict):
    """The library's file of counters, allocated. Without room on the disk it is memory of this process, told to nobody else."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode and not _made(filename):
            filename = _memory()
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        while self._used + len(key.encode()) + MOST_BESIDE_KEY_BYTES > self._capacity:
            self._grow(2 * self._capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _grow(self, size: int) -> None:
        if not _allocated(self._f, size):
            self._f = _copied(self._m)
            self._f.truncate(size)
        self._m = mmap.mmap(self._f.fileno(), size)
        self._capacity = size


def use() -> None:
    """Have the library make its files like this. Before the first counter of the process is made."""
    if hasattr(os, "posix_fallocate") and hasattr(os, "memfd_create"):
        prometheus_client.values.MmapedDict = AllocatedDict  # type: ignore[attr-defined]


def _made(filename: str) -> bool:
    """Whether the file is there with room for its first counters."""
    try:
        with Path(filename).open("ab") as file:
            if _allocated(file, max(FIRST_BYTES, os.fstat(file.fileno()).st_size)):
                return True
    except OSError as error:
        log.warning("metrics_kept_in_memory: %s (%s)", filename, error.strerror)
    with contextlib.suppress(OSError):
        Path(filename).unlink()  # a file without room is worse than none
    return False


def _allocated(file: BinaryIO, size: int) -> bool:
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        log.warning("metrics_kept_in_memory: %s (%s)", file.name, error.strerror)
        return False
    return True


def _memory() -> str:
    """The name of a new file in memory, which lasts as long as this process."""
    return f"/proc/self/fd/{os.memfd_create('counters')}"


def _copied(entries: mmap.mmap) -> BinaryIO:
    file = Path(_memory()).open("r+b")  # noqa: SIM115 - it lasts as long as the counters
    file.write(entries[:])
    file.flush()
    return file
