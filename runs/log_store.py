"""What is kept of a run's output: its end in the row, the whole of it in compressed chunks.

A `RunLog` belongs to one locked row. Raw bytes go in, in order; what cannot become a secret any more becomes readable, is
appended to the tail and to the chunks, and the rest is held back, sealed, until more bytes or the end decide about it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import structlog
from django.conf import settings
from django.db import connection

from base import hooks
from base.redaction import Piece, Policy, Redactor, RedactorState
from base.sealing import SealBroken, seal, unseal
from boxes.conf import BoxApi, box_api
from runs.log_text import LogText
from runs.models import Run, RunLogChunk

log = structlog.get_logger(__name__)

TAIL_BYTES = 24 * 1024
LOOSE_BYTES = 64 * 1024
"""Chunks with less text than this are put together once there are `LOOSE_CHUNKS` of them, and at the end."""
LOOSE_CHUNKS = 64
PURPOSE = "held output"


class RunLog:
    """The log of a run whose row the caller has locked and not yet changed; `write` keeps what `take` and `close` changed.
    `before` is the row as it was then."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.before = dict(run.__dict__)
        self.is_touched = False
        self._is_closed = False
        self._redactor: Redactor | None = None
        self._released = LogText(run.last_output_offset)

    def take(self, offset: int, data: bytes) -> bool:
        """Take the next raw bytes of the log; False, and nothing is taken, if they do not begin where it ends."""
        redactor = self._open()
        if offset == redactor.received:
            self._release(redactor.feed(data))
        self.run.received_offset = redactor.received
        return offset + len(data) == redactor.received

    def close(self) -> None:
        """The log is at its end: what is held back did not become a secret, and is released."""
        self._is_closed = True
        if self.run.output_state is not None or self._redactor is not None:
            self._release(self._open().flush())

    def write(self) -> None:
        """Keep what was released: the tail on the row, which the caller saves, the chunk in its table now."""
        assert self._redactor is not None
        tail = tail_of(self.run).followed_by(self._released).last(TAIL_BYTES)
        loose = self._keep(self._released)
        self.run.output, self.run.output_base_offset = tail.data.decode(), tail.start
        state = {"redactor": _sealed(self._redactor.state), "loose": loose}
        self.run.output_state = {"spans": tail.stored_spans, **({} if self._is_closed else state)}

    def _open(self) -> Redactor:
        if self._redactor is None:
            self._redactor = Redactor(policy_of(self.run), _state_of(self.run))
            self.is_touched = True
        return self._redactor

    def _release(self, pieces: Sequence[Piece]) -> None:
        self._released = self._released.followed_by(LogText.of(pieces, self.run.last_output_offset))
        self.run.last_output_offset = self._released.end

    def _keep(self, text: LogText) -> list[int]:
        """Store the text as a chunk, up to the ceiling; returns where the loose chunks begin, and how many there are."""
        begin, count = (self.run.output_state or {}).get("loose") or [text.start, 0]
        if self._fits(text):
            store_chunk(self.run, text)
            count += 1
        if count >= LOOSE_CHUNKS or len(text.data) >= LOOSE_BYTES or self._is_closed:
            if count > 1:
                put_together(self.run, begin)
            return [text.end, 0]
        return [begin, count]

    def _fits(self, text: LogText) -> bool:
        """Whether the text is kept. What follows a gap is not: a kept log has no holes."""
        size = text.end - text.start
        kept = text.start - self.run.dropped_bytes
        if self.run.dropped_bytes or kept + size > box_api().run_log_bytes:
            self.run.dropped_bytes += size
            return False
        return size > 0


def tail_of(run: Run) -> LogText:
    """The end of the log that the row keeps."""
    data = run.output.encode()
    spans = (run.output_state or {}).get("spans")
    if spans is None and data:
        raw = run.last_output_offset - run.output_base_offset
        spans = [[raw, len(data), raw == len(data)]]
    return LogText.stored(run.output_base_offset, data, spans or ())


def store_chunk(run: Run, text: LogText) -> None:
    chunk = (
        run.pk,
        text.start,
        text.end,
        len(text.data),
        json.dumps(text.stored_spans),
        zlib.compress(text.data),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into box_run_log_chunks (run_id, raw_start, raw_end, text_bytes, pieces, data)"
            " values (%s, %s, %s, %s, %s::jsonb, %s)",
            chunk,
        )


def chunk_text(chunk: RunLogChunk) -> LogText:
    return LogText.stored(chunk.raw_start, zlib.decompress(bytes(chunk.data)), chunk.pieces)


def put_together(run: Run, raw_start: int) -> None:
    """Make one chunk of all chunks from `raw_start` on."""
    chunks = list(run.log_chunks.filter(raw_start__gte=raw_start).order_by("raw_start"))
    if len(chunks) < 2:
        return
    whole = LogText(raw_start)
    for chunk in chunks:
        whole = whole.followed_by(chunk_text(chunk))
    run.log_chunks.filter(pk__in=[chunk.pk for chunk in chunks]).delete()
    store_chunk(run, whole)


def policy_of(run: Run) -> Policy:
    """What is struck out of this run's output beyond the fixed rules."""
    conf = box_api()
    is_secret_word = (lambda word: any(hooks.credential_seen(run, word))) if _is_assignment(run) else None
    return Policy(secrets=secrets_of(conf), is_secret_word=is_secret_word)


def secrets_of(conf: BoxApi) -> tuple[str, ...]:
    """Values that no output may show: those that the installation lists, and its own keys."""
    own = (conf.api_key, conf.webhook_secret, settings.SECRET_KEY)
    return (*conf.secret_values, *(value for value in own if value))


def _is_assignment(run: Run) -> bool:
    return bool(run.requesting_principal.get("type") == "assignment")


def _sealed(state: RedactorState) -> dict[str, Any]:
    stored: dict[str, Any] = state.without_held().to_json()
    stored["before"] = ord(state.before)  # it may be NUL, which no JSON column holds
    if state.held:
        stored["sealed"] = base64.b64encode(seal(PURPOSE, state.held)).decode()
    return stored


def _state_of(run: Run) -> RedactorState:
    """Where redaction stands. If what was held back cannot be opened any more, the log is read again from there."""
    stored: dict[str, Any] | None = (run.output_state or {}).get("redactor")
    if stored is None:
        return RedactorState(offset=run.last_output_offset)
    stored = {**stored, "before": chr(stored["before"])}
    if "sealed" not in stored:
        return RedactorState.from_json(stored)
    try:
        held = base64.b64encode(unseal(PURPOSE, base64.b64decode(stored["sealed"]))).decode()
    except SealBroken:
        log.error("held_output_cannot_be_opened", run=str(run.pk))
        return RedactorState.from_json(stored)
    return RedactorState.from_json({**stored, "held": held})
