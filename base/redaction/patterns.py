"""Patterns that know both what they match and what they could still come to match.

A pattern is a sequence of parts. From the same parts two expressions are made: one for the whole, and one for a
beginning of it that ends where the text ends. Between any two characters up to eight gaps are allowed: a gap is what
`skeleton` put in place of something invisible, so a colour code inside a token hides nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

GAP = "\0"
_GAPS = "\0{0,8}+"


def greedy(one: str, least: int, most: int | str) -> str:
    """As many of a group as there are, none given back.

    Not written as `(...){m,n}+`: before Python 3.11.5 such a repeat forgets to step back from its last, failed round.
    """
    return f"(?>(?:{one}){{{least},{most}}})"


@dataclass(frozen=True, slots=True)
class Literal:
    """One of these texts, exactly or in any case."""

    texts: tuple[str, ...]
    any_case: bool = False

    def characters(self, text: str) -> list[str]:
        if not self.any_case:
            return [re.escape(character) for character in text]
        return [
            f"[{character.lower()}{character.upper()}]" if character.isalpha() else re.escape(character)
            for character in text
        ]

    def whole(self) -> str:
        return "(?:" + "|".join(_GAPS.join(self.characters(text)) for text in self.texts) + ")"

    def leading(self) -> str:
        return self.whole() + _GAPS

    def begun(self, rest: str) -> str:
        return "(?:" + "|".join(_chain(self.characters(text), rest) for text in self.texts) + ")"

    @property
    def longest(self) -> int:
        return max(map(len, self.texts))


@dataclass(frozen=True, slots=True)
class Some:
    """Between `least` and `most` characters of a set, written as inside brackets; a fixed number if it comes last."""

    characters: str
    least: int
    most: int

    def whole(self) -> str:
        return f"[{self.characters}](?:{_GAPS}[{self.characters}]){{{self.least - 1}}}"

    def leading(self) -> str:
        return greedy(f"[{self.characters}]{_GAPS}", self.least, self.most)

    def begun(self, rest: str) -> str:
        return greedy(f"[{self.characters}]{_GAPS}", 0, self.most) + f"(?:\\Z|{rest})"

    @property
    def longest(self) -> int:
        return self.most


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a set that is judged once it ended or reached `most` characters; the last part of its pattern."""

    characters: str
    least: int
    most: int

    def whole(self) -> str:
        one, more = f"[{self.characters}]", f"{_GAPS}[{self.characters}]"
        ended = f"{one}{greedy(more, self.least - 1, self.most - 2)}(?=\0{{0,8}}+(?!{one})[^\0]|\0{{9}})"
        return f"(?:{one}{greedy(more, self.most - 1, self.most - 1)}|{ended})"

    def at_the_end(self) -> str:
        more = greedy(f"{_GAPS}[{self.characters}]", self.least - 1, self.most - 1)
        return f"[{self.characters}]{more}(?=\0*\\Z)"

    def leading(self) -> str:
        raise ValueError("a run comes last")

    def begun(self, rest: str) -> str:
        return greedy(f"[{self.characters}]{_GAPS}", 0, self.most - 1) + "\\Z"

    @property
    def longest(self) -> int:
        return self.most


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several sequences of parts; never the last part of a pattern."""

    sequences: tuple[tuple[Literal | Some, ...], ...]

    def whole(self) -> str:
        raise ValueError("a choice does not come last")

    def leading(self) -> str:
        return "(?:" + "|".join("".join(part.leading() for part in parts) for parts in self.sequences) + ")"

    def begun(self, rest: str) -> str:
        return "(?:" + "|".join(_begun(parts, rest) for parts in self.sequences) + ")"

    @property
    def longest(self) -> int:
        return max(sum(part.longest for part in parts) for parts in self.sequences)


Part = Literal | Some | Run | OneOf
_NEVER = "(?!)"


def _begun(parts: tuple[Part, ...], rest: str) -> str:
    """The parts in order, where the text may end inside any of them."""
    for part in reversed(parts):
        rest = part.begun(rest)
    return rest


def _chain(characters: list[str], rest: str) -> str:
    """The characters in order, where the text may end after any of them."""
    for character in reversed(characters):
        rest = f"{character}{_GAPS}(?:\\Z|{rest})"
    return rest


@dataclass(frozen=True)
class Pattern:
    parts: tuple[Part, ...]

    @cached_property
    def whole(self) -> re.Pattern[str]:
        """The pattern in a text that goes on."""
        return re.compile(self._leading + self.parts[-1].whole())

    @cached_property
    def final(self) -> re.Pattern[str]:
        """The pattern in a text that is complete: its end ends a run too."""
        last = self.parts[-1]
        ends = f"(?:{last.whole()}|{last.at_the_end()})" if isinstance(last, Run) else last.whole()
        return re.compile(self._leading + ends)

    @cached_property
    def begun(self) -> re.Pattern[str]:
        """A beginning of the pattern at the end of the text."""
        return re.compile(_begun(self.parts, _NEVER))

    @cached_property
    def longest(self) -> int:
        """No match has more characters, gaps not counted."""
        return sum(part.longest for part in self.parts)

    @property
    def _leading(self) -> str:
        return "".join(part.leading() for part in self.parts[:-1])
