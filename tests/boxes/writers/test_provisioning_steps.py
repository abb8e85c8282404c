"""What a row needs next: pure, and never more than one thing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxes.models import Box
from boxes.provisioning import Next, Step, is_settled_in, next_step
from boxes.provisioning.steps import retry_in
from boxes.states import BoxState, SetupStatus

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def row(**fields: Any) -> Box:
    bound: dict[str, Any] = {"box_id": "bx_1", "create_key": "k", "marked_at": NOW, "state": "provisioning"}
    return Box(**bound | fields)


@pytest.mark.parametrize(
    ("box", "step"),
    [
        (row(box_id=None, marked_at=None), Next(Step.CREATE)),
        (row(box_id=None, marked_at=None, create_attempted_at=NOW - HOUR), Next(Step.CREATE)),
        (row(box_id=None, marked_at=None, create_attempted_at=NOW - 23 * HOUR), Next(Step.CREATE)),
        (row(box_id=None, create_attempted_at=NOW - 23.5 * HOUR), Next(Step.REST, NOW + HOUR / 2)),
        (row(box_id=None, create_attempted_at=NOW - 24 * HOUR), Next(Step.ABANDON)),
        (row(box_id=None, create_key=None), Next(Step.REST)),
        (row(box_id=None, stop_requested_at=NOW), Next(Step.CREATE)),
        (row(marked_at=None), Next(Step.MARK)),
        (row(marked_at=None, provision_failures=9), Next(Step.MARK)),
        (row(marked_at=None, stop_requested_at=NOW), Next(Step.MARK)),
        (row(marked_at=None, stop_requested_at=NOW, provision_failures=1), Next(Step.STOP)),
        (row(stop_requested_at=NOW), Next(Step.STOP)),
        (row(stop_requested_at=NOW, state="ready", setup_status="done"), Next(Step.STOP)),
        (row(create_key=None, marked_at=None, stop_requested_at=NOW), Next(Step.STOP)),
        (row(create_key=None, marked_at=None), Next(Step.REST)),
        (row(), Next(Step.LOOK)),
        (row(ready_checks=29), Next(Step.LOOK)),
        (row(ready_checks=30), Next(Step.REST)),
        (row(state="ready", setup_status="running"), Next(Step.LOOK)),
        (row(state="ready", setup_status="done"), Next(Step.REST)),
        (row(state="ready", setup_status="failed"), Next(Step.REST)),
        (row(state="error"), Next(Step.REST)),
        (row(stopped_at=NOW, stop_requested_at=NOW), Next(Step.REST)),
    ],
)
def test_the_first_thing_that_is_missing_is_next(box: Box, step: Next) -> None:
    assert next_step(box, NOW, poll_attempts=30) == step


moments = st.none() | st.datetimes(datetime(2026, 5, 1), datetime(2026, 6, 1), timezones=st.just(UTC))
rows = st.builds(
    Box,
    box_id=st.none() | st.just("bx_1"),
    create_key=st.none() | st.just("k"),
    create_attempted_at=moments,
    marked_at=moments,
    stop_requested_at=moments,
    stopped_at=moments,
    state=st.sampled_from(BoxState.values),
    setup_status=st.sampled_from(SetupStatus.values),
    ready_checks=st.integers(0, 40),
    provision_failures=st.integers(0, 3),
)


@given(box=rows)
def test_no_step_asks_for_what_the_row_does_not_have(box: Box) -> None:
    step = next_step(box, NOW, poll_attempts=30).step

    if step == Step.CREATE:
        assert box.box_id is None
        assert box.create_key is not None
    if step in {Step.MARK, Step.STOP, Step.LOOK}:
        assert box.box_id is not None
    if box.stopped_at is not None:
        assert step == Step.REST


@given(box=rows)
def test_a_stop_that_was_asked_for_is_never_forgotten(box: Box) -> None:
    """A bound row that is not stopped and whose stop was asked for is stopped, at once or after one try at its name."""
    if box.stopped_at is not None or box.box_id is None or box.stop_requested_at is None:
        return
    first = next_step(box, NOW, poll_attempts=30).step
    box.provision_failures = 1

    assert first in {Step.MARK, Step.STOP}
    assert next_step(box, NOW, poll_attempts=30).step == Step.STOP


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 5), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (50, 300)]
)
def test_pauses_double_up_to_five_minutes(failures: int, seconds: int) -> None:
    assert retry_in(failures) == timedelta(seconds=seconds)


@pytest.mark.parametrize("state", BoxState.values)
def test_a_box_is_settled_in_when_it_is_ready_or_will_never_be(state: str) -> None:
    ready = state in {"ready", "idle", "running"}

    assert is_settled_in(row(state=state, setup_status="done")) is (ready or state == "error")
    assert is_settled_in(row(state=state, setup_status="pending")) is (state == "error")
    assert is_settled_in(row(state=state, stopped_at=NOW))
