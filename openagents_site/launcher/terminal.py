"""What the user sees. Nothing here can hold up the supervisor: a terminal that does not read loses lines instead."""

from __future__ import annotations

import json
import queue
import re
import sys
import threading
from typing import IO

from rich.console import Console
from rich.text import Text

COLOURS = {"web": "cyan", "scheduler": "magenta", "worker": "green", "provider": "yellow", "postgres": "blue"}
NOTABLE = re.compile(r"\b(warning|error|critical|fatal|panic|traceback)\b", re.IGNORECASE)
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
NOT_SHOWN = frozenset(
    {"level", "event", "timestamp", "at", "logger", "request_id", "ip", "user_id", "exception"}
)
QUEUED_LINES = 2000


class Moving(str):
    """A line that the next one is written over."""


class Terminal:
    """Prints from a thread of its own. `verbose`: every line of every process, else only warnings and errors, and none
    while `quiet`."""

    def __init__(self, stream: IO[str] | None = None, *, verbose: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self.console = Console(file=self._stream, highlight=False, soft_wrap=True)
        self.verbose = verbose
        self.quiet = False
        self._queue: queue.Queue[Text | Moving | None] = queue.Queue(QUEUED_LINES)
        self._has_moving_line = False
        self._writer = threading.Thread(target=self._write_all, name="terminal", daemon=True)
        self._writer.start()

    def say(self, text: str | Text = "", style: str = "") -> None:
        """One line of our own."""
        self._put(text if isinstance(text, Text) else Text(text, style=style))

    @property
    def moves(self) -> bool:
        """Whether a line can be written over."""
        return self.console.is_terminal

    def move(self, text: str) -> None:
        """One line in place of the one that moved last."""
        self._put(Moving(text))

    def event(self, name: str, text: str, *, bad: bool = False) -> None:
        """Something that happened to a process."""
        self._put(_prefix(name).append(text, style="bold red" if bad else "dim"))

    def output(self, name: str, line: str) -> None:
        """A line that a process wrote."""
        if self.verbose or (not self.quiet and NOTABLE.search(line[:400])):
            self._put(_prefix(name).append(readable(line)))

    def close(self, seconds: float = 2.0) -> None:
        """Print what is queued, for as long as the terminal takes it."""
        try:
            self._queue.put(None, timeout=seconds)
        except queue.Full:
            return
        self._writer.join(seconds)

    def _put(self, line: Text | Moving) -> None:
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            return

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                self._write(line)
            except (OSError, ValueError):  # the terminal is gone; what runs goes on
                continue

    def _write(self, line: Text | Moving) -> None:
        if self._has_moving_line:
            self._stream.write("\r\033[K")
        self._has_moving_line = isinstance(line, Moving)
        if isinstance(line, Moving):
            self._stream.write(line[: self.console.width - 1])
        else:
            self.console.print(line)
        self._stream.flush()


def _prefix(name: str) -> Text:
    return Text(f"{name:>9} ", style=COLOURS.get(name, "white")).append("│ ", style="dim")


def readable(line: str) -> str:
    """A structured log line in the words that matter; any other line as it is, without control characters."""
    try:
        fields = json.loads(line) if line.startswith("{") else None
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "event" not in fields:
        return CONTROL.sub("", line)
    words = [str(fields.get("level", "")), str(fields["event"])]
    words += [
        f"{name}={value}" for name, value in fields.items() if name not in NOT_SHOWN and value is not None
    ]
    return CONTROL.sub(" ", " ".join(filter(None, words)))
