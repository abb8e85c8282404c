"""The worker's side: claims, dispatches that go wrong, kills, leases, and what is written in batches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import DataError, connection
from django.utils import timezone

from base import faults, hooks, leases, notify
from base import pump as base_pump
from base.faults import FaultRaised
from base.pump import Counts, Holder, Outcome
from boxes.models import Box
from conversations.services import ensure_conversation
from runs import pump, services
from runs.decide import Observation, Step
from runs.driver import RunDriver, claim, settle
from runs.driver.task import Reply
from runs.models import Run
from runs.scripts import GitCredential
from runs.services import cancel, finish, read_output, recover
from runs.worker import step
from tests.fakes.provider import FakeProvider
from tests.runs.conftest import wait_for

Begin = Callable[..., Run]
MakeRun = Callable[..., Run]
GIVES_UP = 40


def driven(run: Run, steps: int = GIVES_UP) -> Run:
    """The run after as many steps as it takes to end."""
    for _ in range(steps):
        run = step(run.pk)
        if run.is_terminal:
            return run
    raise AssertionError(f"it is still {run.state}")


def now_due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(next_step_at=timezone.now())


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Path]:
    """A file to which a command appends a line each time it really runs."""
    tmp_path.chmod(0o777)
    file = tmp_path / "counter"
    file.touch()
    file.chmod(0o666)
    return file


# --- the straight way


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

    wait_for(lambda: (pump.run_once(), Run.objects.get(pk=run.pk).is_terminal)[1])

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


# --- a dispatch whose answer is lost


@pytest.mark.django_db
def test_a_dispatch_that_arrived_is_found_and_not_repeated(
    begin: Begin, provider: FakeProvider, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}; echo out")
    provider.next("command", drop_after=True)

    run = driven(run)

    assert (run.state, run.output) == ("completed", "out\n")
    assert counter.read_text() == "ran\n"
    assert run.probe_attempts == 1
    assert run.probe_attempted_at is not None


@pytest.mark.django_db
def test_a_dispatch_that_never_arrived_is_lost_and_not_repeated(
    begin: Begin, provider: FakeProvider, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", drop_before=True)

    run = driven(run)

    assert (run.state, run.failure_reason) == ("lost", "dispatch_ambiguous")
    assert counter.read_text() == ""


@pytest.mark.django_db
def test_a_dispatch_that_arrives_after_the_probe_cannot_start(
    begin: Begin, provider: FakeProvider, fake_box: Box, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", drop_before=True)
    step(run.pk)
    late = provider.calls("command")[0].json

    run = driven(run)
    answer = provider.commands.run(provider.boxes[fake_box.box_id], late)

    assert "OPENAGENTS_RUN_EXISTS" in answer["stdout"]
    assert counter.read_text() == ""


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500, "after": True},
        {"status": 504, "after": True},
        {"cut_json": 0.3},
        {"html": True, "after": True},
    ],
)
def test_an_unclear_answer_is_looked_into(
    begin: Begin, provider: FakeProvider, counter: Path, fault: dict[str, Any]
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", **fault)

    run = driven(run)

    assert run.state == "completed"
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
def test_a_dispatch_that_was_delivered_twice_runs_once(
    begin: Begin, provider: FakeProvider, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", twice=True)

    run = driven(run)

    assert run.state == "completed"
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
def test_a_probe_without_an_answer_is_no_answer(begin: Begin, provider: FakeProvider, counter: Path) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", drop_after=True)
    step(run.pk)
    for fault in ({"drop_before": True}, {"status": 503}, {"status": 401}, {"status": 429, "retry_after": 1}):
        provider.next("command", **fault)
        run = step(run.pk)
        assert run.state == "admitted"

    run = driven(run)

    assert run.state == "completed"
    assert run.probe_attempts == 5
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 429, "retry_after": 30},
        {"status": 429},
        {"status": 409, "code": "box_starting"},
        {"status": 409, "code": "box_securing"},
    ],
)
def test_what_certainly_did_not_run_is_dispatched_again(
    begin: Begin, provider: FakeProvider, counter: Path, fault: dict[str, Any]
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", **fault)

    run = step(run.pk)
    assert run.state == "admitted"
    assert run.dispatch_attempted_at is None
    assert run.next_step_at > timezone.now()
    run = driven(run)

    assert run.state == "completed"
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
def test_a_pause_that_the_provider_asked_for_is_kept(begin: Begin, provider: FakeProvider) -> None:
    run = begin("true")
    provider.next("command", status=429, retry_after=30)
    pump.run_once()

    now_due(run)
    pump.run_once()

    assert provider.count("command") == 1
    run.refresh_from_db()
    assert run.calls_resume_at > timezone.now() + timedelta(seconds=25)
    assert run.dispatch_attempted_at is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fault", "state", "reason"),
    [
        ({"status": 402}, "failed", "box_billing_required"),
        ({"status": 401}, "failed", "box_unauthorized"),
        ({"status": 404}, "lost", "box_not_found"),
        ({"status": 409, "code": "box_stopped"}, "lost", "box_stopped"),
        ({"status": 409, "code": "machine_not_running"}, "lost", "machine_not_running"),
    ],
)
def test_a_dispatch_that_is_refused_ends_the_run(
    begin: Begin, provider: FakeProvider, fault: dict[str, Any], state: str, reason: str
) -> None:
    run = begin("true")
    provider.next("command", **fault)

    run = step(run.pk)

    assert (run.state, run.failure_reason) == (state, reason)


@pytest.mark.django_db
def test_a_box_that_cannot_hold_a_run_says_why(begin: Begin, provider: FakeProvider, fake_box: Box) -> None:
    home = provider.commands.home(provider.boxes[fake_box.box_id])
    (home / ".openagents").write_text("a file where the folder should be")

    run = step(begin("true").pk)

    assert (run.state, run.failure_reason) == ("failed", "dispatch_cannot_create_directory")


# --- two workers


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
    wait_for(lambda: number not in leases.live_workers())
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


# --- cancel, deadline, exit


@pytest.mark.django_db
def test_a_cancelled_run_is_really_gone(begin: Begin, counter: Path) -> None:
    run = begin(f"trap '' TERM; echo up >> {counter}; while :; do sleep 0.1; done")
    step(run.pk)
    wait_for(counter.read_text)

    requested = cancel(run)
    assert requested.state in ("dispatched", "running")
    run = driven(run)

    assert run.state == "cancelled"
    assert run.kill_confirmed is True
    assert run.cancellation_effective_at >= run.cancellation_requested_at
    assert not _alive(run)


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
def test_an_exit_before_the_kill_wins(begin: Begin) -> None:
    run = begin("echo done; exit 4")
    step(run.pk)
    wait_for(lambda: not _alive(run))
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
    assert not _alive(run)


@pytest.mark.django_db
def test_a_run_past_its_deadline_is_killed(begin: Begin) -> None:
    run = begin("sleep 30")
    step(run.pk)
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now())

    run = step(run.pk)

    assert (run.state, run.failure_reason, run.timed_out) == ("timed_out", "run_duration_exceeded", True)
    assert run.kill_confirmed is True
    assert not _alive(run)


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
    assert _alive(run)
    provider.heal()
    run = step(run.pk)

    assert (run.state, run.kill_confirmed) == ("timed_out", True)
    assert run.next_step_at is None
    assert not _alive(run)


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


# --- what others tell


@pytest.mark.django_db
def test_a_stopped_box_ends_its_run_without_a_call(
    begin: Begin, fake_box: Box, provider: FakeProvider
) -> None:
    run = begin("sleep 60")
    step(run.pk)
    count = provider.count("command")
    Box.objects.filter(pk=fake_box.pk).update(stopped_at=timezone.now(), state="archived")

    hooks.box_stopped(fake_box.pk)
    pump.run_once()

    run.refresh_from_db()
    assert (run.state, run.failure_reason) == ("lost", "box_stopped")
    assert provider.count("command") == count


@pytest.mark.django_db
def test_it_tells_when_a_box_was_last_in_use(make_run: MakeRun) -> None:
    ended = finish(make_run().pk, "completed", 0)
    alive = make_run(conversation_box=Box.objects.create(conversation=ended.conversation, label="alive"))
    unused = Box.objects.create(conversation=ended.conversation, label="unused")

    [told] = hooks.box_activity([ended.conversation_box_id, alive.conversation_box_id, unused.pk])

    assert told == {ended.conversation_box_id: ended.finished_at, alive.conversation_box_id: None}


@pytest.mark.django_db
def test_a_deleted_owner_has_no_living_runs(make_run: MakeRun, owner: Any) -> None:
    theirs = make_run(conversation=ensure_conversation(owner))
    others = make_run()

    hooks.owner_deleted(owner)

    assert Run.objects.get(pk=theirs.pk).cancellation_requested_at is not None
    assert Run.objects.get(pk=others.pk).cancellation_requested_at is None
    assert services.cancel_of_owner(others.conversation) == 1


@pytest.fixture
def registered() -> Iterator[Callable[..., None]]:
    """Registers with a hook for one test."""
    added: list[tuple[Any, Any]] = []

    def register(hook: Any, function: Any) -> None:
        hook.register(function)
        added.append((hook, function))

    yield register
    for hook, function in added:
        hook._callables.remove(function)


@pytest.mark.django_db
def test_who_asked_for_a_run_is_told_of_its_end_once(begin: Begin, registered: Any) -> None:
    told: list[tuple[Any, str, bool]] = []
    registered(hooks.run_finished, lambda run: told.append((run.pk, run.state, connection.in_atomic_block)))

    run = driven(begin("exit 3"))
    step(run.pk)
    finish(run.pk, "lost")

    assert told == [(run.pk, "failed", True)]


@pytest.mark.django_db
def test_a_listener_that_breaks_the_database_does_not_keep_a_run_alive(begin: Begin, registered: Any) -> None:
    def breaks(run: Run) -> None:
        with connection.cursor() as cursor:
            cursor.execute("select 1 / 0")

    registered(hooks.run_finished, breaks)

    assert driven(begin("true")).state == "completed"


ASSIGNMENT = {"type": "assignment", "id": "7"}
SECRET = "oa_assignment_7." + "s" * 43


@pytest.mark.django_db
def test_a_credential_goes_with_the_dispatch_and_nowhere_else(
    begin: Begin, registered: Any, provider: FakeProvider
) -> None:
    minted: list[Any] = []

    def mint(run: Run) -> GitCredential:
        minted.append(run.pk)
        return GitCredential("https://forge.example", SECRET)

    registered(hooks.run_credential, mint)
    registered(hooks.credential_seen, lambda run, word: word == "s" * 43)
    run = begin('cat "$OPENAGENTS_RUN_DIRECTORY/forge-credential"; echo ' + "s" * 43, principal=ASSIGNMENT)

    run = driven(run)

    assert minted == [run.pk]
    assert "s" * 20 not in run.output
    assert SECRET not in str(Run.objects.filter(pk=run.pk).values())
    assert "[REDACTED" in run.output
    directory = next(provider.commands._root.rglob(str(run.pk)))
    assert not (directory / "forge-credential").exists()


@pytest.mark.django_db
def test_an_assignment_without_its_credential_is_not_sent(begin: Begin, provider: FakeProvider) -> None:
    run = step(begin("true", principal=ASSIGNMENT).pk)

    assert (run.state, run.failure_reason) == ("failed", "credential_unavailable")
    assert run.dispatch_attempted_at is None
    assert provider.count("command") == 0


# --- many at once


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
                )
            ), plan


@pytest.mark.django_db
def test_output_is_read_while_the_run_goes_on(begin: Begin) -> None:
    run = begin("echo one; sleep 30")
    step(run.pk)
    wait_for(lambda: read_output(step(run.pk))["output"] == "one\n")

    cancel(run)
    assert driven(run).output == "one\n"


def _alive(run: Run) -> bool:
    run.refresh_from_db()
    if run.pid is None or not psutil.pid_exists(run.pid):
        return False
    return psutil.Process(run.pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.django_db
def test_a_worker_takes_up_at_its_start_what_nobody_drives(make_run: MakeRun) -> None:
    make_run(state="running", next_step_at=None)
    [driver] = [made for made in hooks.drivers() if made.name == "runs"]

    assert len(driver.claim(Holder(), 10)) == 1
    make_run(state="running", next_step_at=None)
    assert driver.claim(Holder(), 10) == []


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
