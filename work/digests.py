"""Digests of what was asked for and what came of it: SHA-256 of canonical JSON, in lower-case hex. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

from base.text import storable

TOO_DEEP = "[too deep]"
_DEEPEST = 64


def canonical(value: Any) -> str:
    """JSON with sorted keys and without white space: equal values give equal text. Raises ValueError for what JSON
    does not have (NaN, sets, cycles)."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError("it cannot be written as JSON") from error


def digest(value: Any) -> str:
    """The digest of a JSON value. Raises ValueError for what is none."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def argument_digest(arguments: str) -> str:
    """The digest of a tool call's arguments as the model wrote them: white space and order of keys do not count.

    What is not JSON is digested as a map that holds the SHA-256 of the text.
    """
    try:
        return digest(json.loads(arguments, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        raw = hashlib.sha256(arguments.encode("utf-8", "surrogatepass")).hexdigest()
        return digest({"raw_sha256": raw})


def storable_json(value: Any, *, _depth: int = 0) -> Any:
    """The value as a database can hold it: no NUL, no half characters, nothing endlessly deep; keys are texts."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict | list | tuple) and _depth >= _DEEPEST:
        return TOO_DEEP
    if isinstance(value, dict):
        return {storable(str(key)): storable_json(item, _depth=_depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item, _depth=_depth + 1) for item in value]
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
