"""What the answer of a dispatch or a probe means."""

from __future__ import annotations

from typing import Any

import pytest

from runs.decide import (
    Step,
    Trouble,
    TroubleKind,
)
from runs.states import RunState
from tests.runs.deciding import (
    BUSY,
    NOW,
    REFUSED,
    STARTING,
    STOPPED,
    UNREACHABLE,
    ended,
    fresh,
    told,
    view,
)


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
