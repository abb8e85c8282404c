"""Secrets that are recognised by their value: listed ones in clear, others by a question about a word."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable

from . import rules
from .detectors import Hit, Seen, visible
from .escapes import ESCAPE
from .patterns import GAP, Literal, Pattern, Some, greedy
from .skeleton import Skeleton


class Listed:
    """A secret that is known by its value."""

    word_starts = ""

    _BROKEN = re.compile("\0{9,}")

    def __init__(self, value: str) -> None:
        self.value, self.hints = value, (value.lower(),)
        self._whole = re.compile(Literal((value,)).whole())

    def find(self, text: str, position: int, seen: Seen, *, final: bool) -> Hit | None:
        whole = self._whole.search(text, position) if seen.has(self.hints[0]) else None
        if not final:
            begun = self._begun(text, position, whole.start() if whole else len(text))
            if begun is not None:
                return Hit(begun)
        return Hit(whole.start(), whole.end(), whole.start()) if whole else None

    def find_here(self, text: str, position: int, *, final: bool) -> Hit | None:
        return None

    def _begun(self, text: str, position: int, limit: int) -> int | None:
        """Where the first beginning of the value that reaches the end of the text starts, if before `limit`."""
        window = len(self.value) if GAP not in text else len(self.value) * 9
        start = max(position, len(text) - window)
        for broken in self._BROKEN.finditer(text, start):
            start = broken.end()
        while 0 <= (start := text.find(self.value[0], start)) < limit:
            if self.value.startswith(visible(text[start:])):
                return start
            start += 1
        return None


class SecretWord:
    """Words of 40 to 100 URL-safe characters that `is_secret` knows, also where gaps divide them or end them, and behind an
    escape."""

    word_starts = string.ascii_letters + string.digits + "_-"

    _WORD = f"[{rules.WORD}]++" + greedy(f"\0{{1,8}}+[{rules.WORD}]++", 0, 8)
    _RUN = re.compile(rf"(?:(?<![{rules.WORD}])|{ESCAPE.leading()})({_WORD})")
    _RUN_HERE = re.compile(_WORD)
    _ESCAPED = Pattern((ESCAPE, Some(rules.WORD, 1, 1)))
    _BEGUN = re.compile(f"[{rules.WORD}]" + greedy(f"\0{{0,8}}+[{rules.WORD}]", 0, 99) + "\0{0,8}+\\Z")
    _PART = re.compile(rf"[{rules.WORD}]++")

    def __init__(self, is_secret: Callable[[str], object]) -> None:
        self.is_secret = is_secret

    def find(self, text: str, position: int, seen: Seen, *, final: bool) -> Hit | None:
        first, visible_end = position, len(text.rstrip(GAP))
        while match := self._RUN.search(text, position):
            if match.end() - match.start() >= rules.SECRET_WORD_LEAST or match.end() >= visible_end:
                hit = self._in_run(text, match, final=final)
                if hit:
                    return hit
            position = match.start() + 1 if GAP in match[0] else match.end()
        return None if final else self._begun_escape(text, first)

    def _in_run(self, text: str, run: re.Match[str], *, final: bool) -> Hit | None:
        """What follows an escape may be a secret, and so may what only seems to have one in it. The hit begins with the escape:
        without that it would be none."""
        starts = [part.start() for part in self._PART.finditer(text, run.start(), run.start(1))]
        words = (self._RUN_HERE.match(text, start) for start in [*starts, run.start(1)])
        hits = [hit for word in words if word and (hit := self._judged(text, word, final=final))]
        if any(hit.end is None for hit in hits):
            return Hit(run.start())
        return Hit(run.start(), hits[0].end, hits[0].hidden_from) if hits else None

    def _begun_escape(self, text: str, position: int) -> Hit | None:
        window = self._ESCAPED.longest * (9 if GAP in text else 1)
        begun = self._ESCAPED.begun.search(text, max(position, len(text) - window))
        return Hit(begun.start()) if begun else None

    def find_here(self, text: str, position: int, *, final: bool) -> Hit | None:
        match = self._RUN_HERE.match(text, position)
        return self._judged(text, match, final=final) if match else None

    def _judged(self, text: str, match: re.Match[str], *, final: bool) -> Hit | None:
        word = ""
        for part in self._PART.finditer(match[0]):
            word += part[0]
            end = match.start() + part.end()
            if len(word) > rules.SECRET_WORD_MOST:
                return None
            if end == len(text) and not final:
                return Hit(match.start())
            if len(word) >= rules.SECRET_WORD_LEAST and self.is_secret(word):
                return Hit(match.start(), end, match.start())
        undecided = not final and self._BEGUN.match(text, match.start())
        return Hit(match.start()) if undecided else None


def listed(secrets: Iterable[str]) -> list[Listed]:
    """Secrets that are known by their value; a longer one goes first. Too short ones would hide everything."""
    values = {visible(Skeleton.of(secret.strip()).text) for secret in secrets}
    return [
        Listed(value)
        for value in sorted(values, key=len, reverse=True)
        if len(value) >= rules.SHORTEST_LISTED
    ]
