"""What a model says that an answer used, as numbers that can be added up. Pure.

A budget is only as good as these: a number that is negative, endless or a text would undo what was counted before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

LARGEST = 2**53
MOST_NAMES = 40
LONGEST_NAME = 64
BYTES_PER_TOKEN = 4
"""About as many bytes of text are one token, for servers that do not count."""


def counted(usage: Any) -> dict[str, Any]:
    """The counts in a usage report: whole numbers from 0 to 2^53, and maps of such. Whatever else it holds is left out."""
    return _numbers(usage, deeper=1)


def estimated(asked: Iterable[str], said: Iterable[str]) -> dict[str, Any]:
    """The use of an answer whose server does not tell it, by the size of what was asked and said; marked as such."""
    return {"input_tokens": _tokens(asked), "output_tokens": _tokens(said), "estimated_answers": 1}


def _numbers(usage: Any, *, deeper: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if not isinstance(usage, Mapping):
        return kept
    for name, value in usage.items():
        if not isinstance(name, str) or len(name) > LONGEST_NAME or len(kept) >= MOST_NAMES:
            continue
        if isinstance(value, Mapping) and deeper:
            kept[name] = _numbers(value, deeper=deeper - 1)
        elif _is_number(value):
            kept[name] = int(min(max(value, 0), LARGEST))
    return kept


def _is_number(value: Any) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole or (isinstance(value, float) and math.isfinite(value))


def _tokens(texts: Iterable[str]) -> int:
    return math.ceil(sum(len(text.encode("utf-8", "replace")) for text in texts) / BYTES_PER_TOKEN)
