"""Entry points of the scheduler; each is safe to run at any time, twice, and at once."""

from __future__ import annotations

from work import machines, services


def recover() -> None:
    """Take up again the jobs whose worker is gone. Every minute."""
    services.sweep_ended_leases()


def expire_pairings() -> None:
    """End pairings that were not claimed in time. Every minute."""
    machines.expire_pairings()
