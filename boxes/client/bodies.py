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
        document = json.loads(body.decode("utf-8-sig", "replace"), parse_constant=lambda _name: None)
        return _clean(document, MAXIMUM_DEPTH) if isinstance(document, dict) else None
    except (ValueError, RecursionError):
        return None


def first(document: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that is there and not null; None without one."""
    return next((document[name] for name in names if document.get(name) is not None), None)


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
