"""A delegation whose machine goes away, comes back, forgets or takes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from tests.machines.conftest import Wire, delegate, drive, due_now
from tests.machines.delegating import go_silent, offered, taken
from work.models import Delegation, Incident
from work.services import get_job

pytestmark = pytest.mark.django_db


def test_a_fresh_one_to_a_machine_that_is_not_there_is_answered_at_once(wire: Wire) -> None:
    done = drive(delegate(wire))

    assert (done.status, done.error_code) == ("failed", "machine_offline")
    assert "No result was reported" in done.report
    assert Incident.objects.get().severity == "expected"


def test_a_machine_that_goes_away_is_waited_for(connected: Wire) -> None:
    job = taken(connected)
    go_silent(connected)
    due_now(job)

    assert drive(job).status == "running"
    assert Delegation.objects.get().absent_until is not None

    connected.connect(delegations=[{"job": str(job.pk), "attempt": 1}])
    assert drive(job).status == "running"
    assert Delegation.objects.get().absent_until is None
    connected.tell("result", job=str(job.pk), attempt=1, status="completed")
    assert get_job(job.pk).status == "completed"


def test_a_machine_that_does_not_come_back_is_given_up_and_told_when_it_does(connected: Wire) -> None:
    job = taken(connected)
    go_silent(connected)
    due_now(job)
    drive(job)
    Delegation.objects.update(absent_until=timezone.now())
    due_now(job)

    done = drive(job)
    assert (done.status, done.error_code) == ("failed", "machine_disconnected")
    drive()
    connected.connect(delegations=[{"job": str(job.pk), "attempt": 1}])
    assert [(frame["kind"], frame["body"]["reason"]) for frame in connected.hear()] == [
        ("cancel", "machine_disconnected")
    ]
    answer = connected.tell("result", job=str(job.pk), attempt=1, status="completed", prose="late")
    assert answer.json()["refused"] == []
    assert get_job(job.pk).report == done.report


def test_what_a_machine_no_longer_knows_is_offered_again_with_its_session(connected: Wire) -> None:
    job = taken(connected)

    connected.connect(delegations=[])

    [frame] = connected.hear()
    assert (frame["kind"], frame["body"]["attempt"]) == ("offer", 2)
    assert frame["body"]["resume_session_id"] == "sess-1"
    connected.tell("progress", job=str(job.pk), attempt=1, text="from a lost life")
    assert not get_job(job.pk).report
    connected.tell("accepted", job=str(job.pk), attempt=2)
    connected.tell("result", job=str(job.pk), attempt=2, status="completed")
    assert get_job(job.pk).status == "completed"


def test_what_is_still_on_its_way_is_not_offered_twice(connected: Wire) -> None:
    job = delegate(connected)
    drive(job)

    connected.connect(delegations=[])

    assert [frame["body"]["attempt"] for frame in connected.hear()] == [1]


def test_a_machine_that_takes_nothing_is_given_up(connected: Wire) -> None:
    job = offered(connected)
    long_ago = timezone.now() - timedelta(seconds=61)
    connected.machine.channel.__class__.objects.update(connected_at=long_ago)
    with transaction.atomic():
        Delegation.objects.all().delete()
        Delegation.objects.create(job=job, machine=connected.machine, offered_at=long_ago)
    due_now(job)

    assert drive(job).error_code == "machine_timeout"


def test_one_that_takes_too_long_is_ended_and_the_machine_is_told(connected: Wire) -> None:
    job = taken(connected, timeout_ms=1000)
    long_ago = timezone.now() - timedelta(seconds=20)
    connected.machine.channel.__class__.objects.update(connected_at=long_ago)
    with transaction.atomic():
        Delegation.objects.all().delete()
        Delegation.objects.create(
            job=job, machine=connected.machine, offered_at=long_ago, accepted_at=long_ago
        )
    due_now(job)

    assert (drive(job).status, get_job(job.pk).error_code) == ("failed", "timeout")
    drive()
    assert [frame["kind"] for frame in connected.hear()] == ["cancel"]
    assert Incident.objects.get().code == "delegation_timeout"
