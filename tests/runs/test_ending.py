"""Cancelled, late, or ended by itself: one end, and nothing left running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from base import hooks
from base.pump import Holder, Outcome
from boxes.models import Box
from runs import pump
from runs.decide import Observation, Step
from runs.driver import RunDriver
from runs.driver.task import Reply
from runs.models import Run
from runs.services import cancel, finish
from runs.worker import step
from tests.fakes.provider import FakeProvider
from tests.runs.driving import driven, is_alive, now_due
from tests.waiting import eventually

Begin = Callable[..., Run]
MakeRun = Callable[..., Run]


@pytest.mark.django_db
def test_a_cancelled_run_is_really_gone(begin: Begin, counter: Path) -> None:
    run = begin(f"trap '' TERM; echo up >> {counter}; while :; do sleep 0.1; done")
    step(run.pk)
    eventually(counter.read_text)

    requested = cancel(run)
    assert requested.state in ("dispatched", "running")
    run = driven(run)

    assert run.state == "cancelled"
    assert run.kill_confirmed is True
    assert run.cancellation_effective_at >= run.cancellation_requested_at
    assert not is_alive(run)


@pytest.mark.django_db
def test_the_first_request_to_cancel_is_kept(begin: Begin) -> None:
    run = begin("sleep 30")

    first = cancel(run)
    second = cancel(run)

    assert first.cancellation_requested_at == second.cancellation_requested_at
    assert second.conversation_box.box_id


@pytest.mark.django_db
def test_a_run_that_was_never_sent_is_cancelled_without_a_call(begin: Begin, provider: FakeProvider) -> None:
    run = begin("true")
    cancel(run)

    run = step(run.pk)

    assert run.state == "cancelled"
    assert run.kill_confirmed is None
    assert provider.count("command") == 0


@pytest.mark.django_db
def test_an_ended_run_is_not_cancelled(begin: Begin) -> None:
    run = driven(begin("true"))

    assert cancel(run).cancellation_requested_at is None
    assert cancel(run).state == "completed"


@pytest.mark.django_db
def test_an_exit_before_the_kill_wins(begin: Begin, provider: FakeProvider, fake_box: Box) -> None:
    run = begin("echo done; exit 4")
    step(run.pk)
    # The shell is gone a moment before its end is recorded.
    eventually(
        lambda: list(provider.commands.home(provider.boxes[fake_box.box_id]).rglob(f"{run.pk}/exit-code"))
    )
    cancel(run)

    run = driven(run)

    assert (run.state, run.exit_status, run.output) == ("failed", 4, "done\n")
    assert run.cancellation_requested_at is not None


@pytest.mark.django_db
def test_a_cancel_overtakes_a_poll_that_waits(begin: Begin) -> None:
    run, worker = begin("sleep 30"), RunDriver()
    step(run.pk)
    now_due(run)
    [waiting] = worker.claim(Holder(), 10)

    cancel(run)
    run = driven(run)
    worker.settle(
        Holder(), [Outcome(waiting, answer=Reply(Observation(Step.POLL, present=True, alive=True)))]
    )

    run.refresh_from_db()
    assert run.state == "cancelled"


@pytest.mark.django_db
def test_a_cancel_during_the_dispatch_kills_right_after_it(begin: Begin) -> None:
    run, worker = begin("sleep 30"), RunDriver()
    [task] = worker.claim(Holder(), 10)
    reply = worker.perform(task)

    cancel(run)
    assert Run.objects.get(pk=run.pk).generation == task.generation
    worker.settle(Holder(), [Outcome(task, answer=reply)])

    run.refresh_from_db()
    assert run.pid is not None
    assert run.next_step_at <= timezone.now()
    assert driven(run).state == "cancelled"
    assert not is_alive(run)


@pytest.mark.django_db
def test_a_run_past_its_deadline_is_killed(begin: Begin) -> None:
    run = begin("sleep 30")
    step(run.pk)
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now())

    run = step(run.pk)

    assert (run.state, run.failure_reason, run.timed_out) == ("timed_out", "run_duration_exceeded", True)
    assert run.kill_confirmed is True
    assert not is_alive(run)


@pytest.mark.django_db
def test_a_run_past_its_deadline_ends_while_the_provider_is_away_and_is_killed_later(
    begin: Begin, provider: FakeProvider, fake_box: Box
) -> None:
    run = begin("sleep 60")
    step(run.pk)
    provider.always("command", drop_before=True)
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now())

    run = step(run.pk)
    assert (run.state, run.kill_confirmed) == ("timed_out", False)
    assert is_alive(run)
    provider.heal()
    run = step(run.pk)

    assert (run.state, run.kill_confirmed) == ("timed_out", True)
    assert run.next_step_at is None
    assert not is_alive(run)


@pytest.mark.django_db
def test_an_answer_that_is_overdue_at_the_deadline_is_not_waited_for(
    begin: Begin, provider: FakeProvider
) -> None:
    run, hanging = begin("sleep 60"), RunDriver()
    step(run.pk)
    now_due(run)
    hanging.claim(Holder(), 10)
    count = provider.count("command")
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now(), next_step_at=timezone.now())

    assert RunDriver().claim(Holder(), 10) == []  # ended in the claim, without a command

    run.refresh_from_db()
    assert (run.state, run.kill_confirmed) == ("timed_out", False)
    assert provider.count("command") == count


@pytest.mark.django_db
def test_the_kill_of_an_ended_run_ends_with_its_box(
    begin: Begin, fake_box: Box, provider: FakeProvider
) -> None:
    run = begin("sleep 60")
    step(run.pk)
    Run.objects.filter(pk=run.pk).update(kill_confirmed=False)
    finish(run.pk, "timed_out")
    count = provider.count("command")
    Box.objects.filter(pk=fake_box.pk).update(stopped_at=timezone.now(), state="archived")
    hooks.box_stopped(fake_box.pk)

    pump.run_once()

    run.refresh_from_db()
    assert run.kill_confirmed is True
    assert run.next_step_at is None
    assert provider.count("command") == count
