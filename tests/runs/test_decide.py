"""What a run needs now, one row for each rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs.decide import (
    Hold,
    Rest,
    RunView,
    Send,
    Step,
    Write,
)
from tests.runs.deciding import (
    CANCELLED,
    LATE,
    NOW,
    SOON,
    ended,
    fresh,
    next_of,
    view,
)

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
