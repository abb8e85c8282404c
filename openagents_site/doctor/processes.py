"""Whether workers and the scheduler live, judged in one place for `manage.py doctor` and for the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django_q.models import Schedule

from base import leases
from base.amounts import duration
from base.sql import ClockTimestamp
from boxes import heartbeats
from openagents_site.doctor import Finding, bad, good, warning
from openagents_site.launcher import records
from openagents_site.tasks import SCHEDULER

SILENT_SECONDS = 180.0
START_SECONDS = 120.0  # one beat, and the time that a busy machine takes to start
HEARTBEAT = "heartbeat"  # the schedule that stamps
WORKER = "worker"  # as `bin/up` calls its own
INSTALLATION = "installation"

Begun = Mapping[str, float]
"""By process, and for the installation: how many seconds ago it was started or made."""


def processes() -> list[Finding]:
    """Of this moment: workers by their locks, the scheduler by its heartbeat."""
    begun = started()
    return [
        workers(len(leases.live_workers()), begun),
        scheduler(heartbeats.age_seconds(SCHEDULER), begun),
    ]


def workers(alive: int, begun: Begun) -> Finding:
    """`alive` of them hold their sign of life; one that was just started here is given its time."""
    if alive:
        return good("workers", f"{alive} alive")
    return _unless_starting(bad("workers", "none is alive", "start manage.py run_worker"), begun.get(WORKER))


def scheduler(age: float | None, begun: Begun) -> Finding:
    """`age` seconds since its last heartbeat, None if there never was one; given its time like a worker.

    One that runs elsewhere, and never worked, has its time from when the installation was made.
    """
    if age is not None and age <= SILENT_SECONDS:
        return good("scheduler", f"worked {duration(age)} ago")
    seen = "never worked" if age is None else f"silent for {duration(age)}"
    installed = begun.get(INSTALLATION) if age is None else None
    ago = begun.get(SCHEDULER, installed)
    return _unless_starting(bad("scheduler", seen, "restart manage.py qcluster"), ago)


def started() -> Begun:
    """How many seconds ago the worker and the scheduler that `bin/up` runs on this machine were started.

    Besides them the installation, as long as its schedules wait for the first beat.
    """
    groups = records.read(Path(settings.STATE_ROOT) / "run")
    found = {
        part: groups[part].leader.age_seconds()
        for part in (WORKER, SCHEDULER)
        if part in groups and groups[part].leader.is_alive()
    }
    waiting = Schedule.objects.filter(name=HEARTBEAT, task=None).annotate(now=ClockTimestamp())
    first = waiting.values_list("next_run", "now").first()
    return found if first is None else found | {INSTALLATION: (first[1] - first[0]).total_seconds()}


def _unless_starting(finding: Finding, started_ago: float | None) -> Finding:
    if started_ago is None or started_ago > START_SECONDS:
        return finding
    seen = f"just starting, {duration(started_ago)} ago: {finding.seen} yet"
    remedy = f"look again when {START_SECONDS:.0f} s are over; if it starts again and again, see its log"
    return warning(finding.check, seen, remedy)
