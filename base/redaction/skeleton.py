"""A text without what is invisible in it, and the way back to where each character came from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from base.text import INVISIBLE, OPEN_ESCAPE

from .patterns import GAP


@dataclass(frozen=True, slots=True)
class Skeleton:
    """`text` has one gap for each invisible sequence of the original; `original_index` leads back."""

    text: str
    _gaps: list[int] = field(default_factory=list)  # where the gaps are in text
    _extra: list[int] = field(
        default_factory=list
    )  # how many more characters the original has up to after each gap

    @classmethod
    def of(cls, original: str) -> Skeleton:
        if is_plain(original) or INVISIBLE.search(original) is None:
            return cls(original)
        pieces: list[str] = []
        gaps: list[int] = []
        extra: list[int] = []
        length = copied = surplus = 0
        for match in INVISIBLE.finditer(original):
            pieces += (original[copied : match.start()], GAP)
            length += match.start() - copied
            copied = match.end()
            surplus += copied - match.start() - 1
            gaps.append(length)
            extra.append(surplus)
            length += 1
        pieces.append(original[copied:])
        return cls("".join(pieces), gaps, extra)

    def original_index(self, index: int) -> int:
        """Where the character at `index` of `text` begins in the original."""
        before = bisect_right(self._gaps, index - 1)
        return index + (self._extra[before - 1] if before else 0)


_PLAIN = bytes([9, 10, *range(32, 127)])


def is_plain(text: str) -> bool:
    """Plain ASCII, by far the most frequent case, recognised at the speed of copying."""
    return text.isascii() and not text.encode().translate(None, _PLAIN)


def without_open_escape(text: str) -> int:
    """How much of the text is not an escape sequence that more text may complete."""
    match = OPEN_ESCAPE.search(text, max(0, len(text) - 64))
    return match.start() if match else len(text)
