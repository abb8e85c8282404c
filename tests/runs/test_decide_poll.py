"""What the answer of a poll means, and when the next one goes out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from runs.decide import (
    Policy,
    RunView,
    Send,
    Step,
    Trouble,
    TroubleKind,
)
from runs.states import RunState
from tests.runs.deciding import (
    BUSY,
    CANCELLED,
    LATE,
    NOW,
    PAST,
    REFUSED,
    SOON,
    UNREACHABLE,
    WAITING,
    ended,
    next_of,
    told,
    view,
)


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
    last = told(view(exit_status=0, received=10, step_failures=7, quiet_polls=7), **seen)

    assert first.end is None
    assert (first.changes["step_failures"], first.changes["quiet_polls"]) == (1, 1)
    assert ended(last) == ("completed", None)
    assert last.end is not None
    assert last.end.missing_bytes == 90


@pytest.mark.parametrize("known", [{}, {"exit_status": 0}], ids=["just ended", "known to have ended"])
def test_calls_without_an_answer_and_quiet_times_are_no_looks_that_brought_nothing(
    known: dict[str, Any],
) -> None:
    quiet = 0 if known else 50
    run = view(step_failures=30, quiet_polls=quiet, received=10, **known)

    write = told(run, present=True, exit_status=0, log_size=100, is_cut=True)

    assert write.end is None
    assert write.changes["quiet_polls"] == 1


def test_each_piece_that_comes_renews_the_patience() -> None:
    write = told(view(exit_status=0, quiet_polls=7), present=True, exit_status=0, log_size=100, received=5)

    assert (write.end, write.changes["quiet_polls"], write.changes["step_failures"]) == (None, 0, 0)


def test_the_output_of_a_dead_run_is_asked_for_again_when_the_answer_was_cut() -> None:
    seen = {"present": True, "alive": False, "log_size": 100, "is_cut": True}
    run = view(pid=42, dead_sightings=2, quiet_polls=50)

    first, last = told(run, **seen), told(replace(run, dead_sightings=9), **seen)

    assert (first.end, first.changes["dead_sightings"], first.changes["step_failures"]) == (None, 3, 1)
    assert ended(last) == ("lost", "process_missing_without_exit_sentinel")


def test_each_piece_of_a_dead_runs_output_renews_the_patience() -> None:
    run = view(pid=42, dead_sightings=9)

    write = told(run, present=True, alive=False, log_size=100, received=5)

    assert (write.end, write.next_in, write.changes["dead_sightings"]) == (None, 0.0, 2)


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


def test_an_answer_that_was_cut_is_asked_for_again_also_past_the_deadline() -> None:
    seen = {"present": True, "alive": False, "exit_status": 0, "log_size": 100, "is_cut": True}

    first, last = told(view(**LATE), **seen), told(view(exit_status=0, quiet_polls=7, **LATE), **seen)

    assert (first.end, first.next_in) == (None, 0.0)
    assert ended(last) == ("completed", None)


@pytest.mark.parametrize(
    "known",
    [
        {"deadline_at": NOW - timedelta(seconds=61)},
        {"kill_confirmed": True, "cancellation_effective_at": NOW - timedelta(seconds=61), **CANCELLED},
    ],
    ids=["late", "cancelled"],
)
def test_a_log_without_end_does_not_keep_a_run_alive(known: dict[str, Any]) -> None:
    run = view(exit_status=None if "kill_confirmed" in known else 0, received=10, log_size=10**12, **known)
    seen = {"present": True, "alive": False, "log_size": 10**12, "received": 100}

    write = told(run, **seen)
    before = told(replace(run, deadline_at=SOON, cancellation_effective_at=NOW), **seen)

    assert write.end
    assert write.end.missing_bytes == 10**12 - 110
    assert (before.end, before.next_in) == (None, 0.0)


@pytest.mark.parametrize(
    ("known", "seen"),
    [
        ({}, {"present": False}),
        ({"pid": 42, "dead_sightings": 1}, {"present": True, "alive": False, "log_size": 0}),
    ],
    ids=["directory", "processes"],
)
def test_what_may_live_on_of_a_run_without_account_is_ended(
    known: dict[str, Any], seen: dict[str, Any]
) -> None:
    write = told(view(**known), **seen)
    after = view("lost", **known, kill_confirmed=write.changes.get("kill_confirmed"))

    assert write.end
    assert (write.end.state, write.next_in) == ("lost", 0.0)
    assert next_of(after) == Send(Step.KILL)
