"""Delegations that a machine has heard of, or is at work on, for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.machines.conftest import Wire, delegate, drive
from work.models import Job, Machine
from work.services import get_job


def offered(wire: Wire, **changes: Any) -> Job:
    """A delegation that the machine has heard of."""
    job = delegate(wire, **changes)
    drive(job)
    [frame] = wire.hear()
    assert frame["kind"] == "offer"
    return job


def taken(wire: Wire, **changes: Any) -> Job:
    """A delegation that the machine is at work on, in session `sess-1`."""
    job = offered(wire, **changes)
    wire.tell("accepted", job=str(job.pk), attempt=1)
    wire.tell("session", job=str(job.pk), attempt=1, session_id="sess-1", model="opus")
    return get_job(job.pk)


def go_silent(wire: Wire, seconds: int = 100) -> None:
    Machine.objects.filter(pk=wire.machine.pk).update(
        last_seen_at=timezone.now() - timedelta(seconds=seconds)
    )
