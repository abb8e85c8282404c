"""Writing the model's text down while it comes: often enough to be followed, seldom enough not to cost."""

from __future__ import annotations

import time
from uuid import UUID

from work import limits
from work.deep_work.ledger import Ledger
from work.errors import JobFenced
from work.services import append_report_delta

EVERY_SECONDS = 0.5
EVERY_BYTES = 1024


class TextWriter:
    """The text of one answer, on the row from `offset` on: it replaces what an unfinished answer left there."""

    def __init__(
        self, ledger: Ledger, job_id: UUID, generation: int, offset: int, *, replaces: bool = True
    ) -> None:
        """`replaces`: whether there may be text after `offset`."""
        self._ledger, self._job_id, self._generation = ledger, job_id, generation
        self._pending, self._size = list[str](), 0
        self._offset: int | None = offset if replaces else None
        self._room = limits.REPORT_BYTES - offset
        self._written_at = time.monotonic()

    def add(self, text: str) -> None:
        """Take a piece; what has gathered is written now and then. Raises JobFenced."""
        if not text:
            return
        self._pending.append(text)
        self._size += len(text.encode("utf-8", "replace"))
        if self._size >= EVERY_BYTES or time.monotonic() - self._written_at >= EVERY_SECONDS:
            self._ledger(self.flush)

    def flush(self) -> None:
        """Write what has gathered, in this thread; the first time also nothing, where it replaces something. Raises JobFenced."""
        text, self._pending = "".join(self._pending), []
        self._written_at = time.monotonic()
        is_first, self._size = self._offset is not None, 0
        if not is_first and (not text or self._room <= 0):
            return
        if append_report_delta(self._job_id, self._generation, text, offset=self._offset) == "fenced":
            raise JobFenced
        self._offset = None
        self._room -= len(text.encode("utf-8", "replace"))
