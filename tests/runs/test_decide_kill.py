"""What the answer of a kill means."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs.decide import (
    Observation,
    Step,
    Write,
    decide,
)
from runs.states import TERMINAL, RunState
from tests.runs.deciding import (
    CANCELLED,
    LATE,
    NOW,
    POLICY,
    REFUSED,
    STOPPED,
    UNREACHABLE,
    ended,
    told,
    view,
)


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
