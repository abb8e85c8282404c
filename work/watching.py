"""How whoever drives or watches jobs is woken."""

from __future__ import annotations

from typing import Any

from base import notify

DRIVER = "jobs"


def key_of(job_id: Any) -> str:
    """What a job's watchers wait for (`base.wakeups`): notified in every transaction that changed what they see."""
    return f"job:{job_id}"


def wake_watchers(job_id: Any) -> None:
    """Tell the job's watchers at commit."""
    notify.notify(notify.CHANGED, key_of(job_id))


def wake_workers() -> None:
    """Tell the workers at commit that a job is due, or that one they hold is to be looked at."""
    notify.notify(notify.DUE, DRIVER)
