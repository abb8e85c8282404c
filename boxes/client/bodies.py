"""From the bytes of an answer to a clean JSON object, whatever was sent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

MAXIMUM_DEPTH = 64
"""Far deeper than any answer of the API, and far from what recursion in here or in PostgreSQL can bear."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def json_object(body: bytes) -> dict[str, Any] | None:
    """The body as a JSON object; None if it is anything else.

    What PostgreSQL cannot store is replaced: NUL and lone surrogates by U+FFFD, NaN and infinities by null.
    """
    try:
        written = body.decode("utf-8-sig", "replace")
        document = json.loads(written, parse_constant=lambda _name: None)
        if not isinstance(document, dict):
            return None
        # Only an escape can write what a text must not hold, so most answers need no second look at their texts.
        if "\\u" not in written and _is_storable(document, MAXIMUM_DEPTH):
            return document
        cleaned: dict[str, Any] = _clean(document, MAXIMUM_DEPTH)
        return cleaned
    except (ValueError, RecursionError):
        return None


def first(document: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that is there and not null; None without one."""
    for name in names:
        value = document.get(name)
        if value is not None:
            return value
    return None


def text(document: Mapping[str, Any], *names: str) -> str | None:
    """The same, if it is a text."""
    value = first(document, *names)
    return value if isinstance(value, str) else None


def whole_number(document: Mapping[str, Any], *names: str) -> int | None:
    """The same, if it is a whole number, also written as `4.0` or as text."""
    value = first(document, *names)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value, re.ASCII):
        value = int(value)
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def _is_storable(value: Any, depth: int) -> bool:
    """Whether a value without odd texts holds no odd number and is not nested too deeply."""
    kind = value.__class__
    if kind is float:
        return math.isfinite(value)
    if depth == 0:
        return False
    inner = value.values() if kind is dict else value
    return all(_is_storable(item, depth - 1) for item in inner if item.__class__ in (dict, list, float))


def _clean(value: Any, depth: int) -> Any:
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {_UNSTORABLE.sub("\ufffd", key): _clean(item, depth - 1) for key, item in value.items()}
    return value
