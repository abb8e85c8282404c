"""What the forge does when another app speaks up."""

from __future__ import annotations


def register() -> None:
    """Register with the hooks; called once at start."""
