"""The pump's driver of runs: a straight life, and many at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, connection
from django.utils import timezone

from base import pump as base_pump
from base.pump import Counts, Holder, Outcome
from runs import pump
from runs.decide import Observation, Step
from runs.driver import RunDriver, settle
from runs.driver.task import Reply
from runs.models import Run
from runs.services import cancel, read_output
from runs.worker import step
from tests.fakes.provider import FakeProvider
from tests.runs.driving import driven
from tests.waiting import eventually

Begin = Callable[..., Run]
MakeRun = Callable[..., Run]


@pytest.mark.django_db
def test_it_takes_a_run_to_its_end(begin: Begin) -> None:
    run = driven(begin("echo hello; exit 3"))

    assert (run.state, run.exit_status, run.output) == ("failed", 3, "hello\n")
    assert None not in (run.dispatched_at, run.started_at, run.finished_at)
    assert run.pid
    assert run.next_step_at is None
    assert run.lease_expires_at is None


@pytest.mark.django_db
def test_all_due_runs_are_driven_at_once(begin: Begin) -> None:
    run = begin("echo hello")

    eventually(lambda: (pump.run_once(), Run.objects.get(pk=run.pk).is_terminal)[1])

    assert Run.objects.get(pk=run.pk).output == "hello\n"


@pytest.mark.django_db
def test_where_nothing_is_due_nothing_is_done(make_run: MakeRun, provider: FakeProvider) -> None:
    later = timezone.now() + timedelta(hours=1)
    make_run(next_step_at=later)
    make_run(state="completed", next_step_at=None)

    counts = pump.run_once()

    assert (counts.claimed, counts.settled, counts.failed) == (0, 0, 0)
    assert provider.count() == 0


@pytest.mark.django_db
def test_a_pump_that_is_idle_asks_the_database_three_small_things(
    make_run: MakeRun, django_assert_num_queries: Any
) -> None:
    make_run(state="completed", next_step_at=None)
    driver = RunDriver()

    with django_assert_num_queries(3):  # who is dead, what is due, when is the next
        assert driver.claim(Holder(), 10) == []
        assert driver.seconds_until_due() is None


@pytest.mark.django_db
def test_polls_without_news_are_written_in_one_statement(
    make_run: MakeRun, django_assert_max_num_queries: Any
) -> None:
    known = {"pid": 9, "dispatch_attempted_at": timezone.now(), "started_at": timezone.now()}
    runs = [make_run(state="running", **known) for _ in range(30)]
    driver = RunDriver()
    tasks = driver.claim(Holder(), 100)
    seen = Observation(Step.POLL, present=True, alive=True, log_size=0)

    with django_assert_max_num_queries(1):
        driver.settle(Holder(), [Outcome(task, answer=Reply(seen)) for task in tasks])

    for run in runs:
        run.refresh_from_db()
        assert run.lease_expires_at is None
        assert run.quiet_polls == 1
        assert run.next_step_at is not None


@pytest.mark.django_db
def test_one_bad_row_costs_only_itself(make_run: MakeRun) -> None:
    good, bad = make_run(state="running", pid=9), make_run(state="running", pid=9)
    driver = RunDriver()
    tasks = {task.id: task for task in driver.claim(Holder(), 100)}
    fine = Observation(Step.POLL, present=True, alive=False, exit_status=0, log_size=0)
    broken = Observation(Step.POLL, present=True, alive=False, exit_status=2**40, log_size=0)

    counts = Counts()
    outcomes = [
        Outcome(tasks[good.pk], answer=Reply(fine)),
        Outcome(tasks[bad.pk], answer=Reply(broken)),
    ]
    base_pump.settle(driver, Holder(), outcomes, counts)

    assert (counts.settled, counts.failed) == (1, 1)
    assert Run.objects.get(pk=good.pk).state == "completed"
    assert Run.objects.get(pk=bad.pk).state == "running"


@pytest.mark.django_db
def test_a_step_that_breaks_in_our_own_code_is_asked_again(make_run: MakeRun) -> None:
    run, driver = make_run(state="running", pid=9), RunDriver()
    [task] = driver.claim(Holder(), 10)

    driver.settle(Holder(), [Outcome(task, error=KeyError("ours"))])

    run.refresh_from_db()
    assert (run.state, run.step_failures) == ("running", 1)
    assert run.next_step_at is not None


@pytest.mark.django_db
def test_no_claim_reads_the_history(make_run: MakeRun) -> None:
    """Cost follows the living rows: each statement that runs all the time uses an index that holds only those."""
    for _ in range(3):
        make_run(state="completed", next_step_at=None)
    with connection.cursor() as cursor:
        cursor.execute("set local enable_seqscan = off")
        for statement in (
            "select id from box_runs where next_step_at <= clock_timestamp() order by next_step_at limit 5",
            "select min(next_step_at) from box_runs",
            "select id from box_runs where lease_owner is not null and lease_owner <> 4",
            "select id from box_runs where state in ('admitted', 'dispatched', 'running')",
            "select id from box_runs where kill_confirmed = false",
        ):
            cursor.execute("explain " + statement)
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert any(
                name in plan
                for name in (
                    "box_runs_due_index",
                    "box_runs_leased_index",
                    "box_runs_one_active_per_box_index",
                    "box_runs_unkilled_index",
                    "box_runs_unkilled_list_index",
                )
            ), plan


@pytest.mark.django_db
def test_output_is_read_while_the_run_goes_on(begin: Begin) -> None:
    run = begin("echo one; sleep 30")
    step(run.pk)
    eventually(lambda: read_output(step(run.pk))["output"] == "one\n")

    cancel(run)
    assert driven(run).output == "one\n"


@pytest.mark.django_db
def test_a_row_that_cannot_be_written_does_not_end_the_claim(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = (make_run(cancellation_requested_at=timezone.now()) for _ in range(2))
    save = settle.ending.save

    def breaks(log: Any, **known: Any) -> None:
        if log.run.pk == bad.pk:
            raise DataError("out of range")
        save(log, **known)

    monkeypatch.setattr(settle.ending, "save", breaks)

    assert RunDriver().claim(Holder(), 10) == []

    assert Run.objects.get(pk=good.pk).state == "cancelled"
    assert Run.objects.get(pk=bad.pk).state == "admitted"
