"""Reading runs and what they printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict
from uuid import UUID

from django.db.models import Min, QuerySet

from base import connections
from boxes import selectors
from boxes.errors import BoxNotFound
from runs.errors import InvalidOutputOffset, RunNotFound
from runs.log_store import chunk_text, tail_of
from runs.log_text import LogText
from runs.models import Run

LARGEST_PIECE_BYTES = 1 << 20
CHUNKS_AT_ONCE = 8


class Output(TypedDict):
    """A piece of a run's output. Offsets count the raw bytes that the command wrote."""

    output: str
    offset: int  # as asked
    next_offset: int  # ask from here next
    output_base_offset: int  # where what is kept begins
    truncated: bool  # whether something before what is kept was asked for


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A piece of a run's whole log. Offsets count the raw bytes that the command wrote.

    `start` is where the text begins: later than `offset` where that lies before what is kept, or inside a gap.
    """

    output: str
    offset: int
    start: int
    next_offset: int
    output_base_offset: int
    dropped_bytes: int

    @property
    def truncated(self) -> bool:
        """Whether something that was asked for is not kept."""
        return self.offset < self.start


def get_run(conversation_id: UUID, box_ref: str | UUID, run_id: UUID | str) -> Run:
    """The run with its box. Raises BoxNotFound or RunNotFound; another owner's run counts as missing. Two queries."""
    box = selectors.find(conversation_id, box_ref)
    if box is None:
        raise BoxNotFound
    try:
        wanted = UUID(str(run_id))
    except ValueError:
        raise RunNotFound from None
    run = Run.objects.select_related("conversation_box").filter(pk=wanted, conversation_box=box).first()
    if run is None:
        raise RunNotFound
    return run


def list_runs(conversation_id: UUID, box_ref: str | UUID | None = None) -> QuerySet[Run]:
    """The runs of a conversation, or of one box of it, newest first, with their boxes and without output. One query to
    list. Raises BoxNotFound."""
    runs = Run.objects.filter(conversation_id=conversation_id).select_related("conversation_box")
    runs = runs.defer("output", "output_state")
    if box_ref is None:
        return runs
    box = selectors.find(conversation_id, box_ref)
    if box is None:
        raise BoxNotFound
    return runs.filter(conversation_box=box)


def read_output(run: Run, offset: int = 0) -> Output:
    """The end of the run's output, from the raw `offset` on as far as it is kept on the row (24 KiB). No query.

    Reading on from `next_offset` never repeats or skips a character. Raises InvalidOutputOffset.
    """
    check_offset(offset)
    tail = tail_of(run)
    read = tail.read(offset)
    return Output(
        output=read.text,
        offset=offset,
        next_offset=max(run.last_output_offset, read.end),
        output_base_offset=run.output_base_offset,
        truncated=offset < run.output_base_offset,
    )


def read_log(run: Run, offset: int = 0, limit: int = LARGEST_PIECE_BYTES) -> LogSlice:
    """A piece of the whole redacted log from the raw `offset` on, at most `limit` bytes of text (1 MiB at most).

    What is not kept any more is skipped, and `truncated` says so. An empty piece with `next_offset` = `offset` is the
    end for now. Raises InvalidOutputOffset.
    """
    check_offset(offset)
    limit = max(1, min(limit, LARGEST_PIECE_BYTES))
    base = run.log_chunks.aggregate(first=Min("raw_start"))["first"]
    text = _collected(run, offset, limit)
    if not text.spans:
        text = tail_of(run)
    read = text.read(offset, limit)
    return LogSlice(
        output=read.text,
        offset=offset,
        start=max(read.start, offset) if read.text else offset,
        next_offset=max(read.end, offset),
        output_base_offset=run.output_base_offset if base is None else min(base, run.output_base_offset),
        dropped_bytes=run.dropped_bytes,
    )


def log_text(run: Run, offset: int = 0) -> Iterator[str]:
    """The whole log from the raw `offset` on, in pieces; where something is not kept, a line says how much."""
    position = offset
    while True:
        piece = read_log(run, position)
        connections.release()  # whoever reads slowly must not keep it
        if piece.next_offset <= position:
            return
        if piece.truncated:
            yield f"\n[{piece.start - position:,} bytes are not kept]\n"
        yield piece.output
        position = piece.next_offset


def check_offset(offset: int) -> None:
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise InvalidOutputOffset


def _collected(run: Run, offset: int, limit: int) -> LogText:
    """The text of the kept chunks from the one with `offset` on, until there is at least `limit` of it to read."""
    text = LogText(offset)
    position = offset
    while True:
        chunks = list(run.log_chunks.filter(raw_end__gt=position).order_by("raw_start")[:CHUNKS_AT_ONCE])
        for chunk in chunks:
            if text.spans and chunk.raw_start != text.end:
                return text
            text = text.followed_by(chunk_text(chunk))
            position = chunk.raw_end
            if len(text.data) - _before(text, offset) >= limit:
                return text
        if len(chunks) < CHUNKS_AT_ONCE:
            return text


def _before(text: LogText, offset: int) -> int:
    """How much of the text lies before `offset`, at most."""
    return max(0, offset - text.start) if text.spans else 0
