"""Secrets that are recognised by their form: each kind as a pattern."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from . import rules
from .detectors import KEY_BLOCK, SWALLOWS, Sequence
from .escapes import AT_ITS_START, ESCAPE
from .patterns import Literal, Pattern, Run, Some

_NAMES = {characters: name for name, characters in SWALLOWS.items()}


def shortest(names: Iterable[str]) -> tuple[str, ...]:
    """Of these names those that contain no other: where none of them occurs, none of the names does."""
    return tuple(sorted(name for name in names if not any(other in name for other in names if other != name)))


def tokens() -> list[Sequence]:
    """One for each prefix, which is looked for at the speed of copying; behind an escape one for all that go on alike."""
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for rule in rules.TOKENS:
        alike[rule.follow, rule.least].append(rule.prefix)
    return [
        *(
            replace(_token([rule.prefix], rule.follow, rule.least), at_word_start=True)
            for rule in rules.TOKENS
        ),
        *(_behind_an_escape(_token(prefixes, *follow)) for follow, prefixes in alike.items()),
    ]


def _token(prefixes: list[str], follow: str, least: int) -> Sequence:
    parts = (Literal(tuple(prefixes)), Some(follow, least, least))
    return Sequence(Pattern(parts), tuple(prefix.lower() for prefix in prefixes), swallow=_NAMES[follow])


def _behind_an_escape(found: Sequence) -> Sequence:
    """The same where an escape stands for what ended the word before, so that its own word starts."""
    return replace(found, pattern=Pattern((ESCAPE, *found.pattern.parts)), hide_after=AT_ITS_START)


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
    found = [
        Sequence(bearer, ("bearer",), swallow="bearer"),
        Sequence(basic, ("basic",), swallow="bearer", judge=_looks_encoded),
    ]
    return [*(replace(one, at_word_start=True) for one in found), *map(_behind_an_escape, found)]


def _looks_encoded(text: str) -> bool:
    """Basic is also an English word: what follows it is taken for a credential only if it looks like base64."""
    token = text.split()[-1]
    return len(token) >= rules.BASIC_DECIDED_AT or bool(re.search(r"[0-9=+]|[a-z][A-Z]", token))


_SCHEME_ENDS = ("://", r":\/\/")  # the second as some write it in JSON
_SCHEME_END = re.compile("|".join(map(re.escape, _SCHEME_ENDS)))


def urls(provider_domains: tuple[str, ...]) -> Sequence:
    """URLs with a password, and those of the provider's live screens. Recognised by scheme and host alone."""
    domains = tuple(domain.lower().strip(".") for domain in provider_domains)

    def is_private(url: str) -> bool:
        authority = _SCHEME_END.split(url, maxsplit=1)[1]
        user, _, host = authority.rpartition("@")
        if len(authority) >= rules.MOST_AUTHORITY or ":" in user or len(user) > rules.LONGEST_PLAIN_USER:
            return True
        return _is_private_host(host.rpartition(":")[0].lower() if ":" in host else host.lower(), domains)

    authority = Run(r"^\s/?#\"'<>`\\\0", 1, rules.MOST_AUTHORITY)
    parts = (Literal(("http",), True), Some("sS", 0, 1), Literal(_SCHEME_ENDS), authority)
    return Sequence(Pattern(parts), _SCHEME_ENDS, rules.URL_MARK, "url", judge=is_private)


def _is_private_host(host: str, domains: tuple[str, ...]) -> bool:
    labels = host.split(".")
    if len(labels) < 2 or not any(label in rules.PRIVATE_HOSTS for label in labels[:-1]):
        return False
    return not domains or any(host.endswith("." + domain) for domain in domains)


def url_parameters() -> Sequence:
    """The query of a URL, from the parameter that is a secret on."""
    names = {name.replace("_", between) for name in rules.URL_PARAMETERS for between in ("_", "-", "")}
    start = Literal(("?", "&", "#", "&amp;", r"\u0026"))
    parts = (start, Literal(tuple(sorted(names)), True), Literal(("=",)), Some(r"^\s&#\"'<>`\0", 1, 1))
    return Sequence(Pattern(parts), shortest({f"{name}=" for name in names}), rules.URL_MARK, "url")


_ASSIGNMENT = re.compile(r"[^=:]*+[=:]\0*(?>(?:[ \t]\0*)*)(?>(?:\\\0*)*)[\"']?\0*")


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
    escapes = Some(r"\\", 0, 3)  # of a quote, where the text was escaped once or twice
    opening: tuple[Literal | Some, ...] = (escapes, Literal((quote,))) if quote else ()
    value = Run(SWALLOWS[swallow], least - 1, rules.ASSIGNED_DECIDED_AT - 1)
    parts = (
        Literal(names, True),
        escapes,
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
    return re.split(r"[=:]", text, maxsplit=1)[1].strip(" \t\"'),;.}]\\").lower() not in rules.NO_SECRETS
