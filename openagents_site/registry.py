"""What the apps registered, for the processes that carry it out."""

from __future__ import annotations

from base import hooks
from base.pump import Driver


def drivers() -> list[Driver]:
    """One of each driver that the apps registered."""
    return list(hooks.drivers())
