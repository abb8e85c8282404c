"""Boxes, leaks and costs in a terminal."""

from __future__ import annotations

from datetime import datetime

from boxes.models import ReconciliationEvent
from boxes.usage import Totals

UNKNOWN = "?"
MICROUSD = 1_000_000


def dollars(microusd: int | None) -> str:
    """Micro-US-dollars as dollars; what is not known is a question mark and never zero."""
    if microusd is None:
        return UNKNOWN
    whole, part = divmod(microusd, MICROUSD)
    return f"{whole:,}.{part:06d}"


def duration(seconds: int) -> str:
    """Whole seconds as hours, minutes and seconds."""
    hours, rest = divmod(max(0, seconds), 3600)
    return f"{hours:,}:{rest // 60:02d}:{rest % 60:02d}"


def moment(value: datetime | None) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S") if value is not None else "-"


def totals_cells(totals: Totals) -> tuple[str, str, str, str]:
    """Boxes, those without a known cost, the time that they lived, and what is known of their cost."""
    return (
        f"{totals['boxes']:,}",
        f"{totals['unsettled_boxes']:,}",
        duration(totals["lifetime_seconds"]),
        dollars(totals["settled_cost_microusd"]),
    )


def leak_cells(leak: ReconciliationEvent) -> tuple[object, ...]:
    state = leak.details.get("state") if isinstance(leak.details, dict) else None
    return (
        leak.pk,
        leak.provider_box_id,
        "ours" if leak.owned else "not ours",
        state or UNKNOWN,
        moment(leak.observed_at),
        moment(leak.last_seen_at),
        leak.resolution or "open",
    )
