"""Two at once, five hundred times: one wins, the other learns of it, and nothing is done twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from base import hooks
from base.pump import Holder, Outcome
from runs.decide import Observation, Send, Step
from runs.driver import RunDriver, Task
from runs.driver.task import Reply
from runs.models import Run
from runs.services import cancel, finish, record_poll

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
RACES = 125  # of each of the four kinds
MakeRun = Callable[..., Run]
Racer = Callable[[Run], Any]


def raced(runs: Sequence[Run], *racers: Racer) -> list[tuple[Any, ...]]:
    """What each racer answered for each run; for every run all of them start at the same moment."""
    barrier = threading.Barrier(len(racers))
    answers: list[list[Any]] = [[] for _ in racers]

    def race(racer: Racer, answered: list[Any]) -> None:
        try:
            for run in runs:
                barrier.wait(60)
                answered.append(racer(run))
        except BaseException:
            barrier.abort()
            raise
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=pair) for pair in zip(racers, answers, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    return list(zip(*answers, strict=True))


def test_of_two_ends_the_first_stands_and_is_told_once(make_run: MakeRun) -> None:
    runs = [make_run(state="running", pid=9, next_step_at=None) for _ in range(RACES)]
    told: Counter[Any] = Counter()
    hooks.run_finished.register(lambda run: told.update([run.pk]))
    try:
        answers = raced(
            runs,
            lambda run: finish(run.pk, "completed", 0).state,
            lambda run: finish(run.pk, "cancelled").state,
            lambda run: record_poll(run.pk, {"present": True, "log_size": 4, "output": "late"}).state,
        )
    finally:
        hooks.run_finished._callables.pop()

    assert len(answers) == RACES
    for run, (first, second, _) in zip(runs, answers, strict=True):
        run.refresh_from_db()
        assert first == second == run.state
        assert told[run.pk] == 1
        assert run.history.filter(state__in=Run.TERMINAL_STATES).count() == 1


def test_of_two_workers_one_claims(make_run: MakeRun) -> None:
    runs = [make_run(next_step_at=timezone.now()) for _ in range(RACES)]

    def claim(run: Run) -> int:
        task = RunDriver().claim_one(run.pk, Holder())
        return 1 if task and isinstance(task.action, Send) and task.action.step == Step.DISPATCH else 0

    answers = raced(runs, claim, claim)

    assert [sum(pair) for pair in answers] == [1] * RACES


def test_a_cancel_beside_a_dispatch_finds_it_sent_or_keeps_it_from_being_sent(make_run: MakeRun) -> None:
    runs = [make_run(next_step_at=timezone.now()) for _ in range(RACES)]
    driver = RunDriver()

    def dispatch(run: Run) -> Task | None:
        task = driver.claim_one(run.pk, Holder())
        if task is not None:
            driver.settle(Holder(), [Outcome(task, answer=Reply(Observation(Step.DISPATCH, pid=42)))])
        return task

    answers = raced(runs, dispatch, cancel)

    for run, (task, _) in zip(runs, answers, strict=True):
        run.refresh_from_db()
        assert run.cancellation_requested_at is not None
        if task is None:
            assert (run.state, run.dispatch_attempted_at) == ("cancelled", None)
        else:
            assert (run.state, run.pid) == ("dispatched", 42)
            assert run.next_step_at <= timezone.now()  # to be killed


def test_an_exit_beside_a_cancel_and_an_end_from_outside_is_one_end(make_run: MakeRun) -> None:
    known = {"pid": 9, "dispatch_attempted_at": timezone.now(), "started_at": timezone.now()}
    runs = [make_run(state="running", **known) for _ in range(RACES)]
    driver = RunDriver()
    tasks = {task.id: task for task in driver.claim(Holder(), RACES)}
    seen = Observation(Step.POLL, present=True, alive=False, exit_status=0, log_size=3, received=3)

    def settle(run: Run) -> str:
        driver.settle(Holder(), [Outcome(tasks[run.pk], answer=Reply(seen, 0, b"out"))])
        return Run.objects.get(pk=run.pk).state

    answers = raced(runs, settle, cancel, lambda run: finish(run.pk, "lost", None, "from_outside").state)

    for run, (_, _, outside) in zip(runs, answers, strict=True):
        run.refresh_from_db()
        assert run.state == outside
        assert run.state in ("completed", "lost")
        assert run.output == ("out" if run.state == "completed" else "")
        assert run.history.filter(state__in=Run.TERMINAL_STATES).count() == 1
