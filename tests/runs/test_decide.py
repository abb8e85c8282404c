"""Every rule of a run's life, one row each: what is asked next, and what an answer means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runs.decide import (
    Hold,
    Observation,
    Policy,
    Rest,
    RunView,
    Send,
    Step,
    Trouble,
    TroubleKind,
    Write,
    decide,
)
from runs.states import TERMINAL, RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON = NOW + timedelta(seconds=600)
PAST = NOW - timedelta(seconds=1)
POLICY = Policy(interval=1.0, wait=0)
WAITING = Policy(interval=1.0, wait=10)
UNREACHABLE = Trouble(TroubleKind.UNKNOWN, "box_unreachable")
STOPPED = Trouble(TroubleKind.GONE, "box_stopped")
REFUSED = Trouble(TroubleKind.REFUSED, "box_billing_required")
BUSY = Trouble(TroubleKind.RETRY_LATER, "box_rate_limited", 7.0)
STARTING = Trouble(TroubleKind.RETRY_LATER, "box_provider_refused")


def view(state: str = "running", **known: Any) -> RunView:
    sent = {} if known.get("may_dispatch") else {"dispatch_attempted_at": NOW - timedelta(seconds=60)}
    values: dict[str, Any] = {"deadline_at": SOON, **sent, **known}
    return RunView(state=RunState(state), **values)


def fresh(**known: Any) -> RunView:
    """Just claimed for its dispatch."""
    return view("admitted", may_dispatch=True, dispatch_attempted_at=NOW, **known)


def next_of(run: RunView, policy: Policy = POLICY) -> Any:
    return decide(run, None, NOW, policy)


def told(run: RunView, step: Step = Step.POLL, policy: Policy = POLICY, **seen: Any) -> Write:
    action = decide(run, Observation(step, **seen), NOW, policy)
    assert isinstance(action, Write)
    return action


def ended(write: Write) -> tuple[str, str | None] | None:
    return (write.end.state.value, write.end.reason) if write.end else None


CANCELLED = {"cancellation_requested_at": PAST}
LATE = {"deadline_at": PAST}

WHAT_IS_ASKED = [
    ("the holder of the right to dispatch dispatches", fresh(), Send(Step.DISPATCH)),
    ("an unanswered dispatch is probed, never repeated", view("admitted"), Send(Step.PROBE)),
    ("a dispatched run is polled", view("dispatched"), Send(Step.POLL)),
    ("a running run is polled", view("running"), Send(Step.POLL)),
    ("a cancelled run is killed", view("running", **CANCELLED), Send(Step.KILL)),
    ("also one whose dispatch was not answered", view("admitted", **CANCELLED), Send(Step.KILL)),
    ("a run past its deadline is killed", view("running", **LATE), Send(Step.KILL)),
    ("one failed call is no outage", view("running", step_failures=2, **LATE), Send(Step.KILL)),
    (
        "an exit that was seen is not killed but read to its end",
        view(exit_status=0, **CANCELLED),
        Send(Step.POLL),
    ),
    ("nor is a run that our kill ended", view(kill_confirmed=True, **LATE), Send(Step.POLL)),
    (
        "an unconfirmed kill is repeated after the end",
        view("timed_out", kill_confirmed=False),
        Send(Step.KILL),
    ),
    ("an ended run needs nothing", view("completed"), Rest()),
    ("also after a confirmed kill", view("cancelled", kill_confirmed=True), Rest()),
    ("a pause is kept", view(calls_resume_at=NOW + timedelta(seconds=5)), Hold(NOW + timedelta(seconds=5))),
    (
        "but not beyond the deadline",
        view(calls_resume_at=SOON + timedelta(seconds=5)),
        Hold(SOON),
    ),
    (
        "an ended run keeps the pause too",
        view("cancelled", kill_confirmed=False, calls_resume_at=SOON),
        Hold(SOON),
    ),
]


@pytest.mark.parametrize(
    ("run", "action"), [row[1:] for row in WHAT_IS_ASKED], ids=[row[0] for row in WHAT_IS_ASKED]
)
def test_it_asks(run: RunView, action: Any) -> None:
    assert next_of(run) == action


AWAY = {"step_failures": 3}
OVER_WITHOUT_ASKING = [
    ("cancelled before it was sent", fresh(**CANCELLED), ("cancelled", None)),
    ("late before it was sent", fresh(**LATE), ("timed_out", "run_duration_exceeded")),
    ("late while the provider is away", view(**AWAY, **LATE), ("timed_out", "run_duration_exceeded")),
    (
        "late while an answer is overdue",
        view(is_overdue=True, **LATE),
        ("timed_out", "run_duration_exceeded"),
    ),
    (
        "late while calls are paused",
        view(calls_resume_at=SOON, **LATE),
        ("timed_out", "run_duration_exceeded"),
    ),
    ("late and away, but an exit was seen", view(exit_status=0, **AWAY, **LATE), ("completed", None)),
    ("late and away, but a failure was seen", view(exit_status=3, **AWAY, **LATE), ("failed", None)),
    (
        "late and away, but the kill for a cancel was confirmed",
        view(kill_confirmed=True, cancellation_effective_at=NOW, **CANCELLED, **AWAY, **LATE),
        ("cancelled", None),
    ),
    ("its box is stopped", view(is_box_gone=True), ("lost", "box_stopped")),
    ("its box is stopped, an exit was seen", view(is_box_gone=True, exit_status=0), ("completed", None)),
    ("its box is stopped before it was sent", fresh(is_box_gone=True), ("lost", "box_stopped")),
]


@pytest.mark.parametrize(
    ("run", "end"), [row[1:] for row in OVER_WITHOUT_ASKING], ids=[row[0] for row in OVER_WITHOUT_ASKING]
)
def test_it_ends_without_asking(run: RunView, end: Any) -> None:
    action = next_of(run)

    assert isinstance(action, Write)
    assert ended(action) == end


def test_it_keeps_killing_what_it_ended_while_the_provider_was_away() -> None:
    write = next_of(view(**AWAY, **LATE))

    assert write.changes["kill_confirmed"] is False
    assert write.next_in == 0.0


def test_it_waits_with_the_kill_for_as_long_as_the_provider_asked() -> None:
    write = next_of(view(calls_resume_at=NOW + timedelta(seconds=30), **LATE))

    assert write.next_in == 30.0


def test_it_has_nothing_to_kill_where_nothing_was_sent() -> None:
    write = next_of(fresh(**LATE))

    assert "kill_confirmed" not in write.changes
    assert write.next_in is None


def test_a_stopped_box_confirms_every_kill() -> None:
    assert next_of(view("timed_out", kill_confirmed=False, is_box_gone=True)).changes == {
        "kill_confirmed": True
    }
    assert next_of(view(kill_confirmed=False, is_box_gone=True, **CANCELLED)).changes == {
        "kill_confirmed": True
    }


# --- dispatch


def test_a_dispatch_that_says_its_process_starts_the_run() -> None:
    write = told(fresh(), Step.DISPATCH, pid=42)

    assert write.changes["state"] == RunState.DISPATCHED
    assert write.changes["pid"] == 42
    assert write.changes["started_at"] == write.changes["dispatched_at"] == NOW
    assert write.end is None


@pytest.mark.parametrize(
    "answer",
    [
        {"trouble": UNREACHABLE},
        {"trouble": Trouble(TroubleKind.UNKNOWN, "box_provider_refused")},
        {"trouble": Trouble(TroubleKind.UNKNOWN, "box_response_invalid")},
        {},
    ],
    ids=["transport error", "5xx", "no pid in the answer", "the directory exists"],
)
def test_an_ambiguous_dispatch_is_looked_at_at_once(answer: dict[str, Any]) -> None:
    write = told(fresh(), Step.DISPATCH, **answer)

    assert write.end is None
    assert write.next_in == 0.0
    assert "dispatch_attempted_at" not in write.changes


@pytest.mark.parametrize("trouble", [BUSY, STARTING], ids=["429", "409 box_starting"])
def test_a_dispatch_that_certainly_did_not_run_is_repeated(trouble: Trouble) -> None:
    write = told(fresh(), Step.DISPATCH, trouble=trouble)

    assert write.end is None
    assert write.changes["dispatch_attempted_at"] is None
    assert write.next_in == (7.0 if trouble.retry_after_seconds else 1.0)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ({"trouble": REFUSED}, ("failed", "box_billing_required")),
        ({"trouble": STOPPED}, ("lost", "box_stopped")),
        ({"trouble": Trouble(TroubleKind.GONE, "box_not_found")}, ("lost", "box_not_found")),
        ({"never_ran": "dispatch_cannot_write"}, ("failed", "dispatch_cannot_write")),
    ],
)
def test_a_dispatch_that_cannot_run_ends_the_run(answer: dict[str, Any], end: Any) -> None:
    assert ended(told(fresh(), Step.DISPATCH, **answer)) == end


# --- probe


def test_a_probe_that_finds_the_run_takes_it_up_without_inventing_a_pid() -> None:
    with_pid = told(view("admitted"), Step.PROBE, present=True, pid=7)
    without = told(view("admitted"), Step.PROBE, present=True)

    assert with_pid.changes["state"] == RunState.DISPATCHED
    assert with_pid.changes["pid"] == 7
    assert "pid" not in without.changes


def test_a_probe_that_finds_nothing_ends_the_run() -> None:
    assert ended(told(view("admitted"), Step.PROBE, present=False)) == ("lost", "dispatch_ambiguous")


@pytest.mark.parametrize(
    "answer",
    [{"trouble": UNREACHABLE}, {"trouble": REFUSED}, {"trouble": BUSY}, {}],
    ids=["transport", "refused", "429", "no answer in it"],
)
def test_a_probe_without_an_answer_is_repeated_later_and_later(answer: dict[str, Any]) -> None:
    first = told(view("admitted"), Step.PROBE, **answer)
    fourth = told(view("admitted", step_failures=3), Step.PROBE, **answer)

    assert first.end is None
    assert first.changes["step_failures"] == 1
    assert fourth.next_in == (7.0 if answer.get("trouble") is BUSY else 8.0)


# --- poll


def test_a_living_run_is_running() -> None:
    write = told(view("dispatched"), present=True, alive=True, log_size=0)

    assert write.changes["state"] == RunState.RUNNING
    assert write.changes["step_failures"] == write.changes["dead_sightings"] == 0
    assert write.end is None


@pytest.mark.parametrize(("status", "end"), [(0, "completed"), (1, "failed"), (137, "failed")])
def test_an_exit_status_ends_the_run(status: int, end: str) -> None:
    write = told(view(), present=True, alive=False, exit_status=status, log_size=5, received=5)

    assert ended(write) == (end, None)
    assert write.changes["exit_status"] == status


def test_a_lack_of_memory_is_told_apart() -> None:
    write = told(view(), present=True, exit_status=137, exit_signal="SIGKILL", out_of_memory=True, log_size=0)

    assert ended(write) == ("failed", "out_of_memory")
    assert write.changes["exit_signal"] == "SIGKILL"


def test_a_run_that_ended_is_read_to_the_end_first() -> None:
    write = told(view(received=10), present=True, alive=False, exit_status=0, log_size=100, received=50)

    assert write.end is None
    assert write.changes["exit_status"] == 0
    assert write.next_in == 0.0


def test_what_its_children_print_after_its_end_is_not_waited_for() -> None:
    write = told(view(), present=True, alive=True, exit_status=0, log_size=900, log_end=50, received=60)

    assert ended(write) == ("completed", None)
    assert write.end is not None
    assert write.end.missing_bytes == 0


def test_output_that_does_not_come_is_given_up_in_the_end_and_counted() -> None:
    run = view(exit_status=0, received=10, step_failures=0)
    seen = {"present": True, "exit_status": 0, "log_size": 100, "received": 0, "is_cut": True}

    first = told(run, **seen)
    last = told(view(exit_status=0, received=10, step_failures=7), **seen)

    assert first.end is None
    assert first.changes["step_failures"] == 1
    assert ended(last) == ("completed", None)
    assert last.end is not None
    assert last.end.missing_bytes == 90


def test_an_answer_that_was_cut_is_asked_for_again_at_once_a_few_times() -> None:
    seen = {"present": True, "alive": True, "log_size": 100, "is_cut": True}

    old = {"started_at": PAST - timedelta(seconds=60), "quiet_polls": 9}

    first, last = told(view(**old), **seen), told(view(step_failures=8, **old), **seen)

    assert (first.next_in, first.changes["step_failures"]) == (0.0, 1)
    assert last.next_in == 1.0


def test_a_dead_run_is_believed_when_seen_twice() -> None:
    seen = {"present": True, "alive": False, "log_size": 0}

    once = told(view(pid=42), **seen)
    twice = told(view(pid=42, dead_sightings=1), **seen)

    assert once.end is None
    assert once.changes["dead_sightings"] == 1
    assert ended(twice) == ("lost", "process_missing_without_exit_sentinel")


def test_an_exit_that_shows_up_after_a_dead_sighting_counts() -> None:
    write = told(view(pid=42, dead_sightings=1), present=True, alive=False, exit_status=0, log_size=0)

    assert ended(write) == ("completed", None)


def test_a_run_without_a_pid_is_not_dead_while_it_may_be_starting() -> None:
    started = view("dispatched", dispatch_attempted_at=NOW - timedelta(seconds=5), dead_sightings=1)
    long_ago = view("dispatched", dispatch_attempted_at=NOW - timedelta(seconds=50), dead_sightings=1)
    seen = {"present": True, "alive": False, "log_size": 0}

    assert told(started, **seen).end is None
    assert ended(told(long_ago, **seen)) == ("lost", "process_missing_without_exit_sentinel")


def test_a_run_whose_directory_is_gone_is_lost() -> None:
    assert ended(told(view(), present=False)) == ("lost", "run_directory_missing")
    assert ended(told(view(exit_status=0), present=False)) == ("completed", None)


@pytest.mark.parametrize("code", ["box_stopped", "box_not_found", "box_gone", "machine_not_running"])
def test_a_run_whose_box_is_gone_is_lost_with_that_code(code: str) -> None:
    assert ended(told(view(), trouble=Trouble(TroubleKind.GONE, code))) == ("lost", code)


@pytest.mark.parametrize("trouble", [UNREACHABLE, REFUSED, BUSY])
def test_a_poll_without_an_answer_is_repeated(trouble: Trouble) -> None:
    write = told(view(step_failures=1), trouble=trouble)

    assert write.end is None
    assert write.changes["step_failures"] == 2


def test_a_pause_that_the_provider_asked_for_is_kept() -> None:
    write = told(view(), trouble=BUSY)

    assert write.changes["calls_resume_at"] == NOW + timedelta(seconds=7)
    assert write.next_in == 7.0


def test_nothing_waits_beyond_the_deadline() -> None:
    close = NOW + timedelta(seconds=2)

    assert told(view(deadline_at=close), trouble=BUSY).next_in == 2.0
    assert told(view(deadline_at=close, step_failures=9), trouble=UNREACHABLE).next_in == 2.0
    assert told(view(deadline_at=PAST), present=True, alive=True, log_size=0).next_in == 0.0


def test_an_ended_run_past_its_deadline_does_not_wait_for_its_output() -> None:
    write = told(view(exit_status=0, received=5, log_size=9, **LATE), trouble=UNREACHABLE)

    assert ended(write) == ("completed", None)
    assert write.end is not None
    assert write.end.missing_bytes == 4


# --- kill


def test_a_confirmed_kill_cancels() -> None:
    write = told(view(kill_attempts=1, kill_confirmed=False, **CANCELLED), Step.KILL, killed=True)

    assert ended(write) == ("cancelled", None)
    assert write.changes["kill_confirmed"] is True
    assert write.changes["cancellation_effective_at"] == NOW


def test_a_cancellation_is_never_effective_before_it_was_requested() -> None:
    later = NOW + timedelta(seconds=3)
    write = told(view(cancellation_requested_at=later, kill_confirmed=False), Step.KILL, killed=True)

    assert write.changes["cancellation_effective_at"] == later


def test_a_confirmed_kill_at_the_deadline_times_out() -> None:
    write = told(view(kill_confirmed=False, **LATE), Step.KILL, killed=True)

    assert ended(write) == ("timed_out", "run_duration_exceeded")
    assert write.next_in is None


@pytest.mark.parametrize("why", [CANCELLED, LATE, CANCELLED | LATE], ids=["cancelled", "late", "both"])
@pytest.mark.parametrize("killed", [True, False])
def test_an_exit_status_that_is_there_already_wins(why: dict[str, Any], killed: bool) -> None:
    write = told(view(kill_confirmed=False, **why), Step.KILL, killed=killed, exit_status=0, log_size=0)

    assert ended(write) == ("completed", None)
    assert write.changes.get("kill_confirmed") is (True if killed else None)
    assert write.next_in == (None if killed else 0.0)  # what is left of it is still killed


def test_a_killed_run_is_read_to_the_end_first() -> None:
    write = told(view(kill_confirmed=False, **CANCELLED), Step.KILL, killed=True, log_size=100, received=10)

    assert write.end is None
    assert write.changes["kill_confirmed"] is True
    after = view(kill_confirmed=True, received=10, cancellation_effective_at=NOW, **CANCELLED)
    assert ended(told(after, present=True, alive=False, log_size=100, received=90)) == ("cancelled", None)


@pytest.mark.parametrize(
    "answer",
    [{"trouble": UNREACHABLE}, {"trouble": REFUSED}, {"killed": False}, {}],
    ids=["transport", "refused", "processes remain", "no answer in it"],
)
def test_a_kill_that_is_not_confirmed_is_repeated(answer: dict[str, Any]) -> None:
    write = told(view(kill_attempts=1, kill_confirmed=False, **CANCELLED), Step.KILL, **answer)

    assert write.end is None
    assert write.next_in == 1.0


@pytest.mark.parametrize("answer", [{"trouble": UNREACHABLE}, {"killed": False}, {}])
def test_at_the_deadline_a_kill_that_is_not_confirmed_ends_the_run_all_the_same(
    answer: dict[str, Any],
) -> None:
    write = told(view(kill_attempts=1, kill_confirmed=False, **LATE), Step.KILL, **answer)

    assert ended(write) == ("timed_out", "run_duration_exceeded")
    assert write.changes["kill_confirmed"] is False
    assert write.next_in is not None


def test_after_the_end_a_kill_is_repeated_until_it_is_confirmed() -> None:
    run = view("timed_out", kill_attempts=3, kill_confirmed=False)

    assert told(run, Step.KILL, trouble=UNREACHABLE).next_in == 4.0
    assert told(run, Step.KILL, killed=False).next_in == 4.0
    assert told(run, Step.KILL, killed=True).changes["kill_confirmed"] is True
    assert told(run, Step.KILL, trouble=STOPPED).changes["kill_confirmed"] is True
    assert told(run, Step.KILL, killed=True).next_in is None


@pytest.mark.parametrize("state", TERMINAL)
def test_a_terminal_run_never_ends_again(state: RunState) -> None:
    for seen in (
        Observation(Step.KILL, killed=True, exit_status=0),
        Observation(Step.KILL, trouble=STOPPED),
        Observation(Step.KILL, trouble=UNREACHABLE),
    ):
        write = decide(view(state, kill_confirmed=False), seen, NOW, POLICY)
        assert isinstance(write, Write)
        assert write.end is None
        assert "state" not in write.changes


# --- pace


@pytest.mark.parametrize(
    ("run", "seen", "pause"),
    [
        (view(started_at=NOW), {}, 0.1),
        (view(started_at=PAST - timedelta(seconds=60)), {"received": 5, "log_size": 5}, 0.2),
        (view(started_at=PAST - timedelta(seconds=60)), {"received": 5, "log_size": 50}, 0.0),
        (view(started_at=PAST - timedelta(seconds=60), quiet_polls=1), {}, 0.4),
        (view(started_at=PAST - timedelta(seconds=60), quiet_polls=9), {}, 1.0),
    ],
    ids=["young", "talking", "behind", "silent", "long silent"],
)
def test_polls_adapt(run: RunView, seen: dict[str, Any], pause: float) -> None:
    assert told(run, present=True, alive=True, **seen).next_in == pytest.approx(pause)


def test_the_interval_is_the_ceiling_of_every_pause() -> None:
    slow = Policy(interval=0.05)

    for quiet in range(12):
        assert (
            told(view(started_at=NOW, quiet_polls=quiet), policy=slow, present=True, alive=True).next_in
            == 0.05
        )


def test_a_poll_may_wait_on_the_box_up_to_the_deadline() -> None:
    assert next_of(view(), WAITING) == Send(Step.POLL, 10)
    assert next_of(view(deadline_at=NOW + timedelta(seconds=3)), WAITING) == Send(Step.POLL, 3)
    assert next_of(view(step_failures=1), WAITING) == Send(Step.POLL, 0)
    assert next_of(view(dead_sightings=1), WAITING) == Send(Step.POLL, 0)


def test_a_poll_that_waited_is_followed_at_once_and_one_that_could_not_wait_is_not() -> None:
    old = view(started_at=PAST - timedelta(seconds=60), quiet_polls=9)
    seen = {"present": True, "alive": True, "asked_to_wait": 10}

    assert told(old, policy=WAITING, waited_seconds=10.1, **seen).next_in == 0.0
    assert told(old, policy=WAITING, waited_seconds=0.1, **seen).next_in == 1.0
