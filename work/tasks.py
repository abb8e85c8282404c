"""Entry points of the scheduler; each is safe to run at any time, twice, and at once."""

from __future__ import annotations

from work import machines, services
from work.channel import asking
from work.tools import job_boxes


def recover() -> None:
    """Take up again the jobs whose worker is gone, and stop boxes that ended jobs left. Every minute."""
    services.sweep_ended_leases()
    job_boxes.stop_left_behind()


def expire_pairings() -> None:
    """End pairings that were not claimed in time, and forget old questions to machines. Every minute."""
    machines.expire_pairings()
    machines.forget_pairings()
    asking.forget_old()
