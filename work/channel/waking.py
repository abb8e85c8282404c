"""How who waits on a channel is woken (`base.wakeups`)."""

from __future__ import annotations

from typing import Any

from base import notify


def machine_key(machine_id: Any) -> str:
    """What a machine's poll waits for: notified when there is a frame for it, or its connection is over."""
    return f"machine:{machine_id}"


def request_key(request_id: Any) -> str:
    """What waits for the answer of a machine."""
    return f"machine-request:{request_id}"


def wake_machine(machine_id: Any) -> None:
    """At commit."""
    notify.notify(notify.CHANGED, machine_key(machine_id))
