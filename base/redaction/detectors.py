"""One detector for each kind of secret: where the next one begins, and what is done about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from . import rules
from .patterns import GAP, Literal, Pattern

# What goes on after the place where a secret was recognised, by name: a name can be stored, an expression cannot.
SWALLOWS = {
    "word": rules.WORD,
    "dotted": rules.DOTTED,
    "upper": "A-Z0-9",
    "alphanumeric": "A-Za-z0-9",
    "hex": "a-f0-9",
    "bearer": rules.BEARER_TOKEN + "=",
    "url": r"^\s\"'<>`\0",
    "value": r"^\s\"'`\0",
    "double": r"^\"\n\0",
    "single": r"^'\n\0",
}
KEY_BLOCK = "key_block"


@dataclass(frozen=True, slots=True)
class Hit:
    """A secret from `start` on. `end` is where it was recognised; None where only more text can tell.

    What stands before `hidden_from` is shown, `mark` stands for the rest, and `swallow` names what goes on after it.
    """

    start: int
    end: int | None = None
    hidden_from: int = 0
    mark: str = rules.MARK
    swallow: str | None = None


class Seen:
    """Which texts occur at all, in any case and whatever is between their letters; each is looked for once."""

    def __init__(self, text: str) -> None:
        self._text = visible(text).lower()
        self._known: dict[str, bool] = {}

    def has(self, hint: str) -> bool:
        known = self._known.get(hint)
        if known is None:
            known = self._known[hint] = hint in self._text
        return known


class Detector(Protocol):
    @property
    def word_starts(self) -> str:
        """The characters a secret begins with, for a kind that must stand at the start of a word; else empty."""

    def find(self, text: str, position: int, seen: Seen, *, final: bool) -> Hit | None:
        """The first secret, or possible beginning of one, at or after `position`; `seen` is for quick looks."""

    def find_here(self, text: str, position: int, *, final: bool) -> Hit | None:
        """The same at `position` alone, which is taken for the start of a word."""


@dataclass(frozen=True)
class Sequence:
    """A secret that a pattern recognises.

    `hints` are texts in lower case of which one must occur. `judge` may refuse a match by its visible text. What
    `hide_after` matches at the start of a match stays readable.
    """

    pattern: Pattern
    hints: tuple[str, ...]
    mark: str = rules.MARK
    swallow: str | None = None
    at_word_start: bool = False
    judge: Callable[[str], bool] | None = None
    hide_after: re.Pattern[str] | None = None

    def find(self, text: str, position: int, seen: Seen, *, final: bool) -> Hit | None:
        hit = None
        if any(map(seen.has, self.hints)):
            hit = self._whole(text, position, self.pattern.final if final else self.pattern.whole)
        if final:
            return hit
        begun = self._begun(text, position)
        return begun if begun and (hit is None or begun.start < hit.start) else hit

    @cached_property
    def word_starts(self) -> str:
        first = self.pattern.parts[0]
        if not self.at_word_start or not isinstance(first, Literal):
            return ""
        starts = "".join(text[0] for text in first.texts)
        return starts.lower() + starts.upper() if first.any_case else starts

    def find_here(self, text: str, position: int, *, final: bool) -> Hit | None:
        match = (self.pattern.final if final else self.pattern.whole).match(text, position)
        if match:
            return self._judged(match)
        return Hit(position) if not final and self.pattern.begun.match(text, position) else None

    def _whole(self, text: str, position: int, pattern: re.Pattern[str]) -> Hit | None:
        while match := pattern.search(text, position):
            position = match.start() + 1
            if self._may_start(text, match.start()) and (hit := self._judged(match)):
                return hit
        return None

    def _judged(self, match: re.Match[str]) -> Hit | None:
        if self.judge and not self.judge(visible(match[0])):
            return None
        hidden_from = match.start()
        if self.hide_after and (shown := self.hide_after.match(match[0])):
            hidden_from += shown.end()
        return Hit(match.start(), match.end(), hidden_from, self.mark, self.swallow)

    def _begun(self, text: str, position: int) -> Hit | None:
        window = self.pattern.longest if GAP not in text else self.pattern.longest * 9
        position = max(position, len(text) - window)
        while match := self.pattern.begun.search(text, position):
            if self._may_start(text, match.start()):
                return Hit(match.start())
            position = match.start() + 1
        return None

    def _may_start(self, text: str, start: int) -> bool:
        if not self.at_word_start or start == 0:
            return True
        before = text[start - 1]
        return not (before.isascii() and (before.isalnum() or before == "_"))


def visible(text: str) -> str:
    return text.replace(GAP, "")
