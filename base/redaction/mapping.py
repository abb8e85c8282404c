"""Redaction of complete texts and of structured data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import rules
from .stream import Policy, Redactor

DEEPEST = 32
TOO_DEEP = "[TOO_DEEP]"

_HALF_HIDDEN_URL = re.compile(r"https?://[^\s\"'<>`]*?" + re.escape(rules.URL_MARK), re.IGNORECASE)


def redact(
    text: str,
    *,
    secrets: Iterable[str] = (),
    is_secret_word: Callable[[str], object] | None = None,
    provider_domains: Iterable[str] = (),
) -> str:
    """The text with every secret replaced by `[REDACTED]`, and every URL that is one by `[REDACTED_URL]`.

    In a log that arrives in pieces the beginning of a URL may have been read before a secret in its query arrives; a
    complete text has no such past, so here the whole URL goes.
    """
    policy = Policy(tuple(secrets), is_secret_word, tuple(provider_domains))
    if policy.has_no_sign_of_a_secret(text):
        return text
    redactor = Redactor(policy)
    pieces = redactor.feed(text.encode("utf-8", "surrogatepass")) + redactor.flush()
    shown = "".join(piece.text for piece in pieces)
    return _HALF_HIDDEN_URL.sub(rules.URL_MARK, shown) if rules.URL_MARK in shown else shown


def redact_mapping(data: Mapping[Any, Any], *, secrets: Iterable[str] = ()) -> dict[Any, Any]:
    """A copy of structured data without secrets, however nested.

    The whole value of a key that names a secret (`api_key`, `Authorization`, `sessionToken` ...) is replaced; every
    other text is redacted. What is nested deeper than 32 levels becomes `[TOO_DEEP]`.
    """
    known = tuple(secrets)
    return {key: _value(key, value, known, 1) for key, value in data.items()}


def _value(key: object, value: object, secrets: tuple[str, ...], depth: int) -> object:
    if isinstance(key, str) and _is_private(key) and value not in (None, ""):
        return rules.MARK
    if isinstance(value, str):
        return redact(value, secrets=secrets)
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return value
    if depth >= DEEPEST:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {inner: _value(inner, item, secrets, depth + 1) for inner, item in value.items()}
    items = [_value(None, item, secrets, depth + 1) for item in value]
    return tuple(items) if isinstance(value, tuple) else items


def _is_private(key: str) -> bool:
    plain = key.lower().replace("_", "").replace("-", "")
    return any(name in plain for name in rules.PRIVATE_KEYS)
