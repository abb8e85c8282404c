"""Who holds a run may write it, and what nobody holds is taken up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

from base import faults, hooks, leases, notify
from base.faults import FaultRaised
from base.pump import Holder, Outcome
from boxes.models import Box
from runs.decide import Observation, Step
from runs.driver import RunDriver, claim
from runs.driver.task import Reply
from runs.models import Run
from runs.services import recover
from runs.worker import step
from tests.fakes.provider import FakeProvider
from tests.runs.driving import driven, now_due
from tests.waiting import eventually

Begin = Callable[..., Run]
MakeRun = Callable[..., Run]


@pytest.mark.django_db
def test_a_run_that_is_held_is_not_claimed_again(begin: Begin, provider: FakeProvider) -> None:
    run = begin("true")
    [task] = RunDriver().claim(Holder(), 10)

    assert RunDriver().claim(Holder(), 10) == []
    now_due(run)
    assert RunDriver().claim(Holder(), 10) == []
    assert step(run.pk).state == "admitted"
    assert provider.count("command") == 0
    assert task.run.may_dispatch


@pytest.mark.django_db
def test_a_worker_that_slept_through_its_lease_writes_nothing(begin: Begin) -> None:
    run, slow = begin("sleep 30"), RunDriver()
    [task] = slow.claim(Holder(), 10)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    taken = step(run.pk)  # the next worker finds that a dispatch may have left, and probes
    assert (taken.state, taken.failure_reason) == ("lost", "dispatch_ambiguous")

    slow.settle(Holder(), [Outcome(task, answer=Reply(Observation(Step.DISPATCH, pid=7)))])

    run.refresh_from_db()
    assert (run.state, run.pid) == ("lost", None)


@pytest.mark.django_db
def test_what_a_dead_worker_held_is_free_at_once(begin: Begin, provider: FakeProvider) -> None:
    run = begin("true")
    link = notify.own_connection()
    number = leases.new_worker(link)
    driver = RunDriver()
    driver.claim(Holder(number, 3600), 10)
    assert step(run.pk).state == "admitted"
    assert RunDriver().claim(Holder(), 10) == []

    link.close()  # what a kill -9 does to the connection of a worker
    eventually(lambda: number not in leases.live_workers())
    [task] = RunDriver().claim(Holder(), 10)

    assert task.id == run.pk
    assert not task.run.may_dispatch  # the right to dispatch was given, and is not given again


@pytest.mark.django_db
def test_recovery_makes_due_what_nobody_holds(make_run: MakeRun) -> None:
    forgotten = make_run(state="running", next_step_at=None)
    ended = make_run(state="completed", next_step_at=None)
    unconfirmed = make_run(state="timed_out", kill_confirmed=False, next_step_at=None)
    held = make_run(
        state="running", next_step_at=None, lease_expires_at=timezone.now() + timedelta(seconds=60)
    )
    dead = make_run(
        state="running", lease_owner=2**31 - 1, lease_expires_at=timezone.now() + timedelta(seconds=60)
    )
    Run.objects.filter(pk=dead.pk).update(next_step_at=None)

    assert recover() == 3

    due = {run.pk for run in Run.objects.exclude(next_step_at=None)}
    assert due == {forgotten.pk, unconfirmed.pk, dead.pk}
    assert ended.pk not in due
    assert held.pk not in due


@pytest.mark.django_db
@pytest.mark.parametrize(
    "point", ["runs.claimed", "runs.sending", "runs.answered", "runs.settling", "runs.written"]
)
def test_a_worker_that_breaks_anywhere_leaves_a_run_that_can_be_ended(
    begin: Begin, counter: Path, point: str
) -> None:
    run = begin(f"echo ran >> {counter}; echo out")

    with faults.armed(point, "raise"), contextlib.suppress(FaultRaised):
        step(run.pk)
    Run.objects.filter(pk=run.pk).update(lease_owner=None, lease_expires_at=None, next_step_at=timezone.now())
    run = driven(run)

    assert counter.read_text() in ("", "ran\n")
    assert run.state == ("completed" if counter.read_text() else "lost")


@pytest.mark.django_db
def test_a_worker_takes_up_at_its_start_what_nobody_drives(make_run: MakeRun) -> None:
    make_run(state="running", next_step_at=None)
    [driver] = [made for made in hooks.drivers() if made.name == "runs"]

    assert len(driver.claim(Holder(), 10)) == 1
    make_run(state="running", next_step_at=None)
    assert driver.claim(Holder(), 10) == []


@pytest.mark.django_db
def test_the_step_in_the_database_is_the_step_of_the_decision(make_run: MakeRun) -> None:
    """The right to dispatch is given in SQL; it must be given exactly where the decision wants to dispatch."""
    now = timezone.now()
    ready = make_run()
    for refused in (
        make_run(cancellation_requested_at=now),
        make_run(deadline_at=now - timedelta(seconds=1)),
        make_run(calls_resume_at=now + timedelta(seconds=60)),
        make_run(dispatch_attempted_at=now),
        make_run(state="running"),
        make_run(conversation_box=Box.objects.create(conversation=ready.conversation, label="reserved")),
    ):
        [found] = [row for row in [claim.claim_one(refused.pk, Holder())] if row]
        if refused.calls_resume_at is None:
            assert not found.view.may_dispatch
    found = claim.claim_one(ready.pk, Holder())
    assert found is not None
    assert found.view.may_dispatch


@pytest.mark.django_db
def test_only_what_a_dead_worker_held_is_told_as_taken_over(make_run: MakeRun) -> None:
    between_two_looks = make_run(state="running", next_step_at=timezone.now() + timedelta(seconds=60))

    with capture_logs() as healthy:
        assert len(RunDriver(recovers=True).claim(Holder(), 10)) == 1
    Run.objects.filter(pk=between_two_looks.pk).update(lease_owner=2**31 - 1)
    with capture_logs() as after_a_death:
        RunDriver().claim(Holder(), 10)

    assert [line for line in healthy if line["log_level"] != "info"] == []
    assert [(line["event"], line["log_level"]) for line in after_a_death] == [("runs_taken_over", "warning")]
