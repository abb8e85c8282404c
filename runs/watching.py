"""How whoever watches a run is woken."""

from __future__ import annotations

from typing import Any


def key_of(run_id: Any) -> str:
    """What a run's watchers wait for (`base.wakeups`): notified in every transaction that changed what they see."""
    return f"run:{run_id}"
