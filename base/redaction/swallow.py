"""What belongs to a secret after the place where it was recognised."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import rules
from .detectors import KEY_BLOCK, SWALLOWS
from .patterns import GAP, Literal, Pattern, Some, greedy

_RUNS = {
    name: re.compile(f"[{characters}]*+" + greedy(f"\0{{1,8}}+[{characters}]++", 0, ""))
    for name, characters in SWALLOWS.items()
}
_LABEL = Some("A-Z0-9 ", 0, rules.MOST_KEY_LABEL)
_KEY_END = Pattern((Literal(("-----END ",)), _LABEL, Literal(("-----",))))


@dataclass(frozen=True, slots=True)
class Swallowing:
    """Inside a secret. `left` is how many more characters a key block may have; None for others."""

    name: str
    left: int | None = None

    @classmethod
    def begin(cls, name: str) -> Swallowing:
        return cls(name, rules.MOST_KEY_BLOCK if name == KEY_BLOCK else None)

    def go_on(self, text: str, position: int, *, final: bool) -> tuple[int, Swallowing | None]:
        """Where the secret ends as far as the text tells, and what is still swallowed after that (None: nothing)."""
        if self.name == KEY_BLOCK:
            return self._key_block(text, position, final=final)
        match = _RUNS[self.name].match(text, position)
        end = match.end() if match else position
        rest = len(text) - end
        may_go_on = rest <= 8 and text[end:] == GAP * rest
        return end, self if may_go_on and not final else None

    def _key_block(self, text: str, position: int, *, final: bool) -> tuple[int, Swallowing | None]:
        limit = position + (self.left or 0)
        for end in _KEY_END.whole.finditer(text, position, min(len(text), limit + _KEY_END.longest * 9)):
            if end.start() <= limit and "PRIVATE KEY" in end[0].replace(GAP, ""):
                return end.end(), None
        begun = None if final else self._begun_end(text, position)
        if begun is not None and begun <= limit:
            return begun, Swallowing(self.name, limit - begun)
        if len(text) > limit:
            return limit, None
        return len(text), None if final else Swallowing(self.name, limit - len(text))

    @staticmethod
    def _begun_end(text: str, position: int) -> int | None:
        window = _KEY_END.longest * (9 if GAP in text else 1)
        match = _KEY_END.begun.search(text, max(position, len(text) - window))
        return match.start() if match else None
