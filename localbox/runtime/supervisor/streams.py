"""What a command writes: kept up to a ceiling, the rest read, counted and dropped, so that no writer ever blocks
or dies of it and no memory or disk fills."""

from __future__ import annotations

import os

from .loop import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .loop import Loop

_CHUNK = 1 << 16
_LAST_CHUNKS = 32  # more than a pipe can hold, less than a writer that never stops


class Stream:
    """The read end of a command's standard output or error."""

    def __init__(self, loop: Loop, fd: int) -> None:
        self.fd = fd
        self.ended = False
        self.dropped = 0  # bytes beyond the ceiling
        self._loop = loop
        os.set_blocking(fd, False)
        loop.watch(fd, READ, self._ready)

    def drain(self) -> None:
        """Take what is in the pipe now."""
        for _ in range(_LAST_CHUNKS):
            if self.ended or not self._read():
                return

    def take(self, data: bytes) -> None:
        """Nothing keeps it: it is only counted."""
        self.dropped += len(data)

    def close(self) -> None:
        if not self.ended:
            self.ended = True
            self._loop.forget(self.fd)
            os.close(self.fd)

    def _ready(self) -> None:
        self._read()

    def _read(self) -> bool:
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self.take(data)
        else:
            self.close()
        return bool(data)


class KeptStream(Stream):
    """Keeps the first `ceiling` bytes in memory until they are handed over; then only drains."""

    def __init__(self, loop: Loop, fd: int, ceiling: int) -> None:
        self._ceiling = ceiling
        self._kept = bytearray()
        super().__init__(loop, fd)

    def take(self, data: bytes) -> None:
        room = self._ceiling - len(self._kept)
        self._kept += data[:room]
        self.dropped += max(0, len(data) - room)

    def hand_over(self) -> bytes:
        """What was kept. Whatever still comes from a child left behind is read and dropped."""
        kept, self._kept, self._ceiling = bytes(self._kept), bytearray(), 0
        return kept


class LoggedStream(Stream):
    """Appends to a log file up to `ceiling` bytes. A full disk drops like the ceiling does."""

    def __init__(self, loop: Loop, fd: int, log: int, ceiling: int) -> None:
        self._log = log
        self._room = ceiling
        super().__init__(loop, fd)

    def take(self, data: bytes) -> None:
        try:
            written = os.write(self._log, data[: self._room]) if self._room else 0
        except OSError:
            written = 0
        self._room -= written
        self.dropped += len(data) - written

    def close(self) -> None:
        if not self.ended:
            super().close()
            os.close(self._log)
