"""The log file of each process: readable by its owner only, and never larger than a few files of fixed size."""

from __future__ import annotations

import logging
import os
from collections import deque
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES = 10 << 20
FILES_KEPT = 4  # besides the current one
LONGEST_LINE = 64 << 10  # bytes; a longer line is written in pieces


class LogFile(RotatingFileHandler):
    """Appends lines to `folder/name.log`. A disk that is full loses lines and nothing else."""

    def __init__(self, folder: Path, name: str, file_bytes: int = FILE_BYTES) -> None:
        super().__init__(
            folder / f"{name}.log",
            maxBytes=file_bytes,
            backupCount=FILES_KEPT,
            encoding="utf-8",
            errors="replace",
            delay=True,
        )
        self.recent: deque[str] = deque(maxlen=200)

    def write_line(self, line: str) -> None:
        self.recent.append(line)
        self.emit(logging.makeLogRecord({"msg": line}))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the library's
        """A supervisor does not fail because a log cannot be written."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", errors="replace", opener=_private)


class Lines:
    """Bytes as they come, made into lines of text."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that `chunk` completes; an empty chunk is the end and completes what is pending."""
        *whole, self._pending = (self._pending + chunk).split(b"\n")
        if (not chunk or len(self._pending) > LONGEST_LINE) and self._pending:
            whole.append(self._pending)
            self._pending = b""
        return [line.decode("utf-8", errors="replace").rstrip("\r") for line in whole]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
