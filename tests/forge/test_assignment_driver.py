"""What is left of an attempt's start or end, a worker does."""

from __future__ import annotations

import pytest

from base import pump
from base.clock import database_now
from base.errors import CodedError
from base.faults import FaultRaised, armed
from forge import assignments
from forge.assignments.driver import AssignmentDriver, carry_on
from forge.models import Assignment, Issue
from runs import services as runs
from runs.models import Run
from tests.forge.conftest import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


def test_what_its_maker_did_not_start_a_worker_starts_once(create):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create(idempotency_key="k")
    left = Assignment.objects.get()
    assert (left.state, Run.objects.count()) == ("admitted", 0)
    assert left.next_step_at is not None

    carry_on(left)
    carry_on(Assignment.objects.get())

    assert Assignment.objects.get().state == "running"
    assert Run.objects.count() == 1


def test_a_run_that_was_made_before_its_maker_died_is_found_again(create, issue):
    with pytest.raises(FaultRaised), armed("assignments.run_admitted", "raise"):
        create()
    Issue.objects.filter(pk=issue.pk).update(body="says something else by now")

    carry_on(Assignment.objects.get())

    started = Assignment.objects.get()
    assert started.run_id == Run.objects.get().pk


def test_what_an_end_left_running_a_worker_stops(create, monkeypatch):
    assignment, _ = create()
    assignments.finish(assignment, "failed", reason="machine_revoked")
    left = Assignment.objects.get()
    assert left.next_step_at is not None

    carry_on(left)

    assert Assignment.objects.get().next_step_at is None
    assert Run.objects.get().cancellation_requested_at is not None


def test_a_run_that_ended_before_the_starter_came_is_said(create, monkeypatch):
    from forge.assignments import starting

    real = starting.runs.start_run

    def starts_and_ends(*args, **more):
        run = real(*args, **more)
        return runs.finish(run.pk, "completed", 0)

    monkeypatch.setattr(starting.runs, "start_run", starts_and_ends)

    with pytest.raises(CodedError) as refused:
        create()

    assert refused.value.code == "assignment_finished"
    ended = Assignment.objects.get()
    assert (ended.state, ended.run_id, ended.started_at) == ("completed", None, None)


@pytest.mark.django_db(transaction=True)
def test_the_driver_starts_what_is_due_and_stops_what_is_over(create):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create()
    driver = AssignmentDriver()
    assert pump.run_once([driver]).claimed == 0  # its maker's turn
    rows(
        "update forge_assignments set next_step_at = clock_timestamp(), lease_expires_at = clock_timestamp()"
    )
    assert driver.seconds_until_due() == 0

    assert pump.run_once([driver]).settled == 1

    started = Assignment.objects.get()
    assert started.state == "running"
    assert started.next_step_at == started.deadline_at
    assignments.finish(started, "failed")
    assert pump.run_once([driver]).settled == 1
    assert Run.objects.get().cancellation_requested_at is not None
    assert driver.seconds_until_due() is None


@pytest.mark.django_db(transaction=True)
def test_a_step_that_breaks_is_taken_again_later(create, monkeypatch):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create()
    rows(
        "update forge_assignments set next_step_at = clock_timestamp(), lease_expires_at = clock_timestamp()"
    )

    with armed("assignments.admitted", "raise"):
        pump.run_once([AssignmentDriver()])

    left = Assignment.objects.get()
    assert (left.state, left.step_failures, left.lease_expires_at) == ("admitted", 1, None)
    assert left.next_step_at > database_now()
