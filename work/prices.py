"""What a model's tokens cost. Pure.

A price in US dollars for a million tokens is the same number in micro-US-dollars for one token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from work.conf import ECHO


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-US-dollars for one token."""

    input: float
    cached: float
    output: float


FREE = Price(0.0, 0.0, 0.0)


class PricesInvalid(ValueError):
    """An entry of the prices is not MODEL=INPUT:CACHED:OUTPUT."""


def price_of(model: str, entries: Iterable[str]) -> Price | None:
    """The price of a model; None if no entry names it. The built-in model costs nothing. Raises PricesInvalid."""
    return FREE if model == ECHO else parsed(entries).get(model)


def parsed(entries: Iterable[str]) -> dict[str, Price]:
    """The prices by model. Raises PricesInvalid for the first entry that is none."""
    prices = {}
    for entry in entries:
        model, _, numbers = entry.rpartition("=")
        prices[model.strip()] = _price(model.strip(), numbers, entry)
    return prices


def cost_microusd(usage: Mapping[str, Any], price: Price) -> int:
    """What this use cost, rounded up. Cached input tokens are part of the input tokens."""
    cached = min(tokens(usage, "input_tokens_details", "cached_tokens"), tokens(usage, "input_tokens"))
    fresh = tokens(usage, "input_tokens") - cached
    cost = fresh * price.input + cached * price.cached + tokens(usage, "output_tokens") * price.output
    return math.ceil(cost - 1e-9)


def tokens(usage: Mapping[str, Any], *path: str) -> int:
    """The number at this place of a usage map; 0 where there is none."""
    value: Any = usage
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(0, int(value)) if is_number else 0


def _price(model: str, numbers: str, entry: str) -> Price:
    try:
        values = [float(number) for number in numbers.split(":")]
    except ValueError:
        values = []
    if not model or len(values) != 3 or not all(math.isfinite(value) and value >= 0 for value in values):
        raise PricesInvalid(
            f"{entry[:80]!r} is not MODEL=INPUT:CACHED:OUTPUT in US dollars for a million tokens"
        )
    return Price(*values)
