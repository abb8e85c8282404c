"""Money as the provider tells it. Everything is whole micro-US-dollars here; what cannot be read is None, never zero."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from boxes.client.bodies import first, whole_number

LARGEST_MICROUSD = 2**63 - 1
"""What a bigint column holds; a larger figure is nonsense."""

_COST_FIELDS = ("settledCostMicrousd", "settled_cost_microusd", "costMicrousd", "cost_microusd")
_USAGE_FIELDS = ("settledCostMicrousd", "settled_cost_microusd")
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider has metered of one box so far. A field that it did not say is None."""

    seconds: int | None
    cost_microusd: int | None
    running: bool | None


def parse_cost_microusd(box: Mapping[str, Any]) -> int | None:
    """The cost that a box's own fields carry, read in the same way on every path.

    The first field that is there counts, whether it can be read or not: a non-negative integer, or a text holding one.
    """
    cost = _first_said(box, _COST_FIELDS)
    if cost is None and isinstance(usage := box.get("usage"), Mapping):
        cost = _first_said(usage, _USAGE_FIELDS)
    if isinstance(cost, str):
        cost = int(cost) if _WHOLE.fullmatch(cost) else None
    if isinstance(cost, bool) or not isinstance(cost, int):
        return None
    return cost if 0 <= cost <= LARGEST_MICROUSD else None


def parse_usage(document: Mapping[str, Any]) -> Usage:
    """The answer to a usage call; its cost is `dollars`, else a cost field, else seconds at the rate that is said."""
    usage = document["usage"] if isinstance(document.get("usage"), Mapping) else document
    seconds = whole_number(usage, "seconds")
    cost = _microusd(usage.get("dollars"))
    if cost is None:
        cost = parse_cost_microusd(document)
    if cost is None:
        cost = _at_rate(seconds, whole_number(usage, "secondsPerDollar", "seconds_per_dollar"))
    running = first(usage, "running")
    return Usage(
        seconds if seconds is None or seconds >= 0 else None,
        cost,
        running if isinstance(running, bool) else None,
    )


def _first_said(document: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        value = document.get(name)
        if value is not None and value is not False:
            return value
    return None


def _microusd(dollars: Any) -> int | None:
    """Dollars with up to six decimals, exactly: a float is read as the decimal that it prints as."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float | str):
        return None
    try:
        amount = Decimal(str(dollars).strip())
        if not amount.is_finite() or not 0 <= amount <= LARGEST_MICROUSD // 1_000_000:
            return None
        return int((amount * 1_000_000).to_integral_value(ROUND_HALF_UP))
    except (InvalidOperation, ValueError):
        return None


def _at_rate(seconds: int | None, seconds_per_dollar: int | None) -> int | None:
    if seconds is None or seconds < 0 or not seconds_per_dollar or seconds_per_dollar < 0:
        return None
    return _microusd(str(Decimal(seconds) / Decimal(seconds_per_dollar)))
