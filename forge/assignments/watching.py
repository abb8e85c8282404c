"""How whoever drives or watches attempts is woken."""

from __future__ import annotations

from typing import Any

from base import notify

DRIVER = "assignments"


def key_of(assignment_id: Any) -> str:
    """What watchers of an attempt wait for (`base.wakeups`)."""
    return f"assignment:{assignment_id}"


def changed(assignment_id: Any) -> None:
    """Tell the watchers at commit."""
    notify.notify(notify.CHANGED, key_of(assignment_id))


def wake_workers() -> None:
    """Tell the workers at commit that an attempt is due."""
    notify.notify(notify.DUE, DRIVER)
