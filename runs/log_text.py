"""Readable text with the way back to the raw log: offsets that callers see count the bytes that the command wrote.

A text is made of spans. Where nothing was struck out a span's text is the very bytes of the log, so it can be entered at
any character; a replacement is entered only at its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from base.redaction import Piece

MOST_PIECES = 1000
"""A text of more pieces than this is binary noise: it is read by blocks of `COARSE_BYTES`, not by characters."""
COARSE_BYTES = 512


@dataclass(frozen=True, slots=True)
class Span:
    """`raw` bytes of the log, shown as `shown` bytes of UTF-8."""

    raw: int
    shown: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Slice:
    """Text that was read: it stands for the raw bytes from `start` up to `end`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class LogText:
    """The redacted text of the raw bytes from `start` up to `end`."""

    start: int = 0
    data: bytes = b""
    spans: tuple[Span, ...] = field(default_factory=tuple)

    @property
    def end(self) -> int:
        return self.start + sum(span.raw for span in self.spans)

    @classmethod
    def of(cls, pieces: Sequence[Piece], start: int) -> LogText:
        """The text of pieces that follow each other; `start` is where they begin, also if there is none."""
        data = "".join(piece.text for piece in pieces).encode()
        if len(pieces) > MOST_PIECES:
            return cls(start, data, tuple(_coarse(pieces)))
        spans: list[Span] = []
        for piece in pieces:
            _add(spans, Span(piece.raw_end - piece.raw_start, len(piece.text.encode()), piece.exact))
        return cls(start, data, tuple(spans))

    @classmethod
    def stored(cls, start: int, data: bytes, spans: Iterable[Sequence[int]]) -> LogText:
        """The text that `stored_spans` and its bytes were kept of."""
        return cls(start, data, tuple(Span(raw, shown, bool(exact)) for raw, shown, exact in spans))

    @property
    def stored_spans(self) -> list[list[int]]:
        return [[span.raw, span.shown, int(span.exact)] for span in self.spans]

    def followed_by(self, other: LogText) -> LogText:
        """Both, one after the other. An empty text takes the place of the other."""
        if not self.spans:
            return other
        spans = list(self.spans)
        for span in other.spans:
            _add(spans, span)
        return LogText(self.start, self.data + other.data, tuple(spans))

    def last(self, limit: int) -> LogText:
        """The end of it in at most `limit` bytes, cut between characters and never inside a replacement."""
        if len(self.data) <= limit:
            return self
        shown, raw, kept = 0, 0, []
        for span in reversed(self.spans):
            if shown + span.shown > limit:
                if span.exact:
                    part = limit - shown - _steps_to_character(self.data, len(self.data) - limit)
                    shown, raw = shown + part, raw + part
                    if part:
                        kept.append(Span(part, part, True))
                break
            shown, raw = shown + span.shown, raw + span.raw
            kept.append(span)
        return LogText(self.end - raw, self.data[len(self.data) - shown :], tuple(reversed(kept)))

    def read(self, offset: int, limit: int | None = None) -> Slice:
        """The text from the raw `offset` on, in at most `limit` bytes (the first replacement is always given whole).

        An offset before the beginning reads from there; one inside a character or a replacement reads what follows it.
        """
        left, right, raw_left, raw_right = self._entry(offset), len(self.data), 0, self.end
        raw_left = left[1]
        if limit is not None and right - left[0] > limit:
            right, raw_right = self._exit(left[0], limit)
        return Slice(self.data[left[0] : right].decode(), raw_left, raw_right)

    def _entry(self, offset: int) -> tuple[int, int]:
        """Where reading begins: in the data, and in the raw log."""
        shown, raw = 0, self.start
        for span in self.spans:
            if offset <= raw:
                break
            if offset < raw + span.raw and span.exact:
                into = offset - raw
                into += _steps_to_character(self.data, shown + into)
                return shown + into, raw + into
            shown, raw = shown + span.shown, raw + span.raw
        return shown, max(raw, self.start)

    def _exit(self, begin: int, limit: int) -> tuple[int, int]:
        """Where reading that began at `begin` of the data ends: in the data, and in the raw log."""
        shown, raw = 0, self.start
        for span in self.spans:
            after = shown + span.shown
            if after > begin + limit and after > begin:
                if span.exact:
                    return self._exit_within(shown, raw, begin, limit)
                if shown > begin:
                    return shown, raw
            shown, raw = after, raw + span.raw
            if shown >= begin + limit and shown > begin:
                break
        return shown, raw

    def _exit_within(self, shown: int, raw: int, begin: int, limit: int) -> tuple[int, int]:
        """Inside the exact span that begins at `shown`: back to the end of a whole character, but past at least one."""
        stop = begin + limit
        while stop > max(begin, shown) and _is_inside_character(self.data, stop):
            stop -= 1
        if stop <= begin:
            stop = begin + 1
            stop += _steps_to_character(self.data, stop)
        return stop, raw + stop - shown


def _coarse(pieces: Sequence[Piece]) -> Iterator[Span]:
    """Spans of many pieces each."""
    raw = shown = 0
    for piece in pieces:
        raw += piece.raw_end - piece.raw_start
        shown += len(piece.text.encode())
        if raw >= COARSE_BYTES:
            yield Span(raw, shown, False)
            raw = shown = 0
    if raw or shown:
        yield Span(raw, shown, False)


def _add(spans: list[Span], span: Span) -> None:
    """Append, joined to the last span where both are exact, or where this one only lengthens a replacement."""
    if not span.raw and not span.shown:
        return
    last = spans[-1] if spans else None
    if last is not None and (
        (last.exact and span.exact) or (not last.exact and not span.exact and not span.shown)
    ):
        spans[-1] = Span(last.raw + span.raw, last.shown + span.shown, last.exact)
    else:
        spans.append(span)


def _is_inside_character(data: bytes, index: int) -> bool:
    return index < len(data) and data[index] & 0xC0 == 0x80


def _steps_to_character(data: bytes, index: int) -> int:
    steps = 0
    while _is_inside_character(data, index + steps):
        steps += 1
    return steps
