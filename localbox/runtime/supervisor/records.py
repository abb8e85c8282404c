"""What is known of detached commands, on disk: it outlives the supervisor, so an exit code is never lost."""

from __future__ import annotations

import json
import os

from .wire import Header

_SUFFIX = ".json"


class Records:
    """One small file a command, in a folder that only the supervisor's user can enter."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._last = max(self._numbers(), default=0)
        self._unsaved: dict[int, Header] = {}  # ends that found the disk full

    def next_id(self) -> int:
        """A number that this box never gave before, also not in an earlier life of the supervisor."""
        self._last += 1
        self.save(self._last, {})  # taken, even if the command does not start
        return self._last

    def save(self, number: int, record: Header) -> None:
        new = self._path(number) + ".new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.rename(new, self._path(number))

    def save_end(self, number: int, record: Header) -> None:
        """Like `save`; where the disk is full, the end is at least not forgotten while the supervisor lives."""
        try:
            self.save(number, record)
        except OSError:
            self._unsaved[number] = record

    def load(self, number: int) -> Header | None:
        """The record, or None for a number that was never given or whose command never started."""
        if number in self._unsaved:
            return self._unsaved[number]
        try:
            with open(self._path(number), encoding="utf-8") as file:
                record = json.load(file)
        except (FileNotFoundError, ValueError):
            return None
        return record if isinstance(record, dict) and record else None

    def _numbers(self) -> list[int]:
        names = os.listdir(self._folder)
        return [int(name[: -len(_SUFFIX)]) for name in names if name.endswith(_SUFFIX)]

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number}{_SUFFIX}")
