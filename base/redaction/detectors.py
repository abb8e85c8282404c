"""One detector for each kind of secret: where the next one begins, and what is done about it."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from . import rules
from .patterns import GAP, Literal, Pattern, Run, Some
from .skeleton import Skeleton

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
_NAMES = {characters: name for name, characters in SWALLOWS.items()}


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
        self._text = _visible(text).lower()
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
        if self.judge and not self.judge(_visible(match[0])):
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


class Listed:
    """A secret that is known by its value."""

    word_starts = ""

    _BROKEN = re.compile("\0{9,}")

    def __init__(self, value: str) -> None:
        self.value, self._hint = value, value.lower()
        self._whole = re.compile(Literal((value,)).whole())

    def find(self, text: str, position: int, seen: Seen, *, final: bool) -> Hit | None:
        whole = self._whole.search(text, position) if seen.has(self._hint) else None
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
            if self.value.startswith(_visible(text[start:])):
                return start
            start += 1
        return None


class SecretWord:
    """Words of 40 to 100 URL-safe characters that `is_secret` knows, also where gaps divide them or end them."""

    word_starts = string.ascii_letters + string.digits + "_-"

    _WORD = rf"[{rules.WORD}]++(?:\0{{1,8}}+[{rules.WORD}]++){{0,8}}+"
    _RUN, _RUN_HERE = re.compile(rf"(?<![{rules.WORD}]){_WORD}"), re.compile(_WORD)
    _BEGUN = re.compile(rf"[{rules.WORD}](?:\0{{0,8}}+[{rules.WORD}]){{0,99}}+\0{{0,8}}+\Z")
    _PART = re.compile(rf"[{rules.WORD}]++")

    def __init__(self, is_secret: Callable[[str], object]) -> None:
        self.is_secret = is_secret

    def find(self, text: str, position: int, seen: Seen, *, final: bool) -> Hit | None:
        visible_end = len(text.rstrip(GAP))
        while match := self._RUN.search(text, position):
            if match.end() - match.start() >= rules.SECRET_WORD_LEAST or match.end() >= visible_end:
                hit = self._judged(text, match, final=final)
                if hit:
                    return hit
            position = match.start() + 1 if GAP in match[0] else match.end()
        return None

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


def _visible(text: str) -> str:
    return text.replace(GAP, "")


def _shortest(names: Iterable[str]) -> tuple[str, ...]:
    """Of these names those that contain no other: where none of them occurs, none of the names does."""
    return tuple(sorted(name for name in names if not any(other in name for other in names if other != name)))


def listed(secrets: Iterable[str]) -> list[Listed]:
    """Secrets that are known by their value; a longer one goes first. Too short ones would hide everything."""
    values = {_visible(Skeleton.of(secret.strip()).text) for secret in secrets}
    return [
        Listed(value)
        for value in sorted(values, key=len, reverse=True)
        if len(value) >= rules.SHORTEST_LISTED
    ]


def tokens() -> list[Sequence]:
    return [
        Sequence(
            Pattern((Literal((rule.prefix,)), Some(rule.follow, rule.least, rule.least))),
            (rule.prefix.lower(),),
            swallow=_NAMES[rule.follow],
            at_word_start=True,
        )
        for rule in rules.TOKENS
    ]


def key_block() -> Sequence:
    label = Some("A-Z0-9 ", 0, rules.MOST_KEY_LABEL)
    parts = (Literal(("-----BEGIN ",)), label, Literal(("-----",)))
    return Sequence(
        Pattern(parts), ("-----begin ",), swallow=KEY_BLOCK, judge=lambda text: "PRIVATE KEY" in text
    )


def authorization() -> list[Sequence]:
    spaces = Some(" \t\n", 1, rules.MOST_SPACES)
    bearer = Pattern((Literal(("bearer",), True), spaces, Some(rules.BEARER_TOKEN, 1, 1)))
    basic = Pattern(
        (Literal(("basic",), True), spaces, Run(rules.BEARER_TOKEN + "=", 1, rules.BASIC_DECIDED_AT))
    )
    return [
        Sequence(bearer, ("bearer",), swallow="bearer", at_word_start=True),
        Sequence(basic, ("basic",), swallow="bearer", at_word_start=True, judge=_looks_encoded),
    ]


def _looks_encoded(text: str) -> bool:
    """Basic is also an English word: what follows it is taken for a credential only if it looks like base64."""
    token = text.split()[-1]
    return len(token) >= rules.BASIC_DECIDED_AT or bool(re.search(r"[0-9=+]|[a-z][A-Z]", token))


def urls(provider_domains: tuple[str, ...]) -> Sequence:
    """URLs with a password, and those of the provider's live screens. Recognised by scheme and host alone."""
    domains = tuple(domain.lower().strip(".") for domain in provider_domains)

    def is_private(url: str) -> bool:
        authority = url.split("://", 1)[1]
        user, _, host = authority.rpartition("@")
        if len(authority) >= rules.MOST_AUTHORITY or ":" in user or len(user) > rules.LONGEST_PLAIN_USER:
            return True
        return _is_private_host(host.rpartition(":")[0].lower() if ":" in host else host.lower(), domains)

    authority = Run(r"^\s/?#\"'<>`\\\0", 1, rules.MOST_AUTHORITY)
    parts = (Literal(("http",), True), Some("sS", 0, 1), Literal(("://",)), authority)
    return Sequence(Pattern(parts), ("://",), rules.URL_MARK, "url", judge=is_private)


def _is_private_host(host: str, domains: tuple[str, ...]) -> bool:
    labels = host.split(".")
    if len(labels) < 2 or not any(label in rules.PRIVATE_HOSTS for label in labels[:-1]):
        return False
    return not domains or any(host.endswith("." + domain) for domain in domains)


def url_parameters() -> Sequence:
    """The query of a URL, from the parameter that is a secret on."""
    names = {name.replace("_", between) for name in rules.URL_PARAMETERS for between in ("_", "-", "")}
    start = Literal(("?", "&", "#", "&amp;"))
    parts = (start, Literal(tuple(sorted(names)), True), Literal(("=",)), Some(r"^\s&#\"'<>`\0", 1, 1))
    return Sequence(Pattern(parts), _shortest({f"{name}=" for name in names}), rules.URL_MARK, "url")


_ASSIGNMENT = re.compile(r"[^=:]*+[=:]\0*(?:[ \t]\0*)*+[\"']?\0*")


def assignments() -> list[Sequence]:
    found = []
    for names, signs, least in (
        (rules.ASSIGNED, "=:", rules.ASSIGNED_LEAST),
        (rules.ASSIGNED_BY_EQUALS, "=", rules.ASSIGNED_BY_EQUALS_LEAST),
    ):
        for quote, first, swallow in (
            ('"', r"^\"\n\0", "double"),
            ("'", r"^'\n\0", "single"),
            ("", r"^\s\"'`$*\[{<(%=>~,;:/\\\0", "value"),
        ):
            found.append(_assignment(names, signs, least, quote, first, swallow))
    return found


def _assignment(
    names: tuple[str, ...], signs: str, least: int, quote: str, first: str, swallow: str
) -> Sequence:
    spaces = Some(" \t", 0, 4)
    opening: tuple[Literal | Some, ...] = (Literal((quote,)),) if quote else ()
    value = Run(SWALLOWS[swallow], least - 1, rules.ASSIGNED_DECIDED_AT - 1)
    parts = (
        Literal(names, True),
        Some("\"'", 0, 1),
        spaces,
        Some(signs, 1, 1),
        spaces,
        *opening,
        Some(first, 1, 1),
    )
    return Sequence(
        Pattern((*parts, value)), names, swallow=swallow, judge=_is_a_value, hide_after=_ASSIGNMENT
    )


def _is_a_value(text: str) -> bool:
    return re.split(r"[=:]", text, maxsplit=1)[1].strip(" \t\"'),;.}]").lower() not in rules.NO_SECRETS
