"""What is done about an entry without a row, by table."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxes.reconciler.leaks import KnownLeak, Leak, LeakStep, decide_leak
from tests.boxes.reconciler.plain import MARKER, NOW, ago, box


def decided(
    shown: Any, known: KnownLeak | None = None, *, creating_since: datetime | None = None
) -> tuple[LeakStep, bool]:
    leak = decide_leak(shown, known, marker=MARKER, creating_since=creating_since, now=NOW)
    return leak.step, leak.reopens


def stamped(seconds: float) -> str:
    return ago(seconds).isoformat()


def handled(resolution: str, seconds: float) -> KnownLeak:
    return KnownLeak(ago(seconds), resolution)


def test_a_box_with_our_name_is_stopped() -> None:
    assert decided(box()) == (LeakStep.STOP, False)


@pytest.mark.parametrize("name", ["developer-box", None, "", MARKER + "-2", MARKER.upper()])
def test_a_box_under_any_other_name_is_only_reported(name: str | None) -> None:
    assert decided(box(name=name)) == (LeakStep.REPORT, False)


@pytest.mark.parametrize("word", ["archiving", "archived", "error", "stopped", "cancelled"])
def test_a_box_that_is_down_is_not_stopped(word: str) -> None:
    assert decided(box(word)) == (LeakStep.REPORT, False)


@pytest.mark.parametrize("word", ["init", "provisioning", "cloning", "limbo", None])
def test_a_box_that_may_cost_is_stopped(word: str | None) -> None:
    assert decided(box(word)) == (LeakStep.STOP, False)


@pytest.mark.parametrize(
    ("created", "step"),
    [
        (stamped(59), LeakStep.IGNORE),
        (stamped(60), LeakStep.STOP),
        (stamped(-60), LeakStep.IGNORE),  # the provider's clock is a minute ahead
        (stamped(-3600), LeakStep.STOP),  # that is no age
        ("soon", LeakStep.STOP),
        (None, LeakStep.STOP),
    ],
)
def test_a_box_that_is_said_to_be_young_may_be_about_to_get_its_row(
    created: str | None, step: LeakStep
) -> None:
    assert decided(box(createdAt=created)) == (step, False)


@pytest.mark.parametrize(
    ("name", "created", "step"),
    [
        ("Box 1", None, LeakStep.IGNORE),
        ("Box 1", stamped(90), LeakStep.IGNORE),
        ("Box 1", stamped(399), LeakStep.IGNORE),  # clocks differ
        ("Box 1", stamped(401), LeakStep.REPORT),  # older than what is being created
        (MARKER, stamped(90), LeakStep.STOP),  # with our name it would have a row
        (MARKER, None, LeakStep.STOP),
    ],
)
def test_a_box_that_may_be_one_being_created_is_not_reported(
    name: str, created: str | None, step: LeakStep
) -> None:
    assert decided(box(name=name, createdAt=created), creating_since=ago(100))[0] == step


@pytest.mark.parametrize(
    ("resolution", "seconds", "expected"),
    [
        ("stopped", 299, (LeakStep.REPORT, False)),
        ("stopped", 300, (LeakStep.STOP, True)),
        ("gone", 1, (LeakStep.STOP, True)),
        ("adopted", 1, (LeakStep.STOP, True)),
        ("dismissed", 9_999_999, (LeakStep.REPORT, False)),
    ],
)
def test_a_handled_leak_that_is_up_again_is_new(resolution: str, seconds: float, expected: Any) -> None:
    assert decided(box(), handled(resolution, seconds)) == expected


@pytest.mark.parametrize("resolution", ["stopped", "gone", "adopted", "dismissed"])
@pytest.mark.parametrize("word", ["archiving", "archived", "error"])
def test_a_handled_leak_that_is_down_is_never_stopped_again(resolution: str, word: str) -> None:
    assert decided(box(word), handled(resolution, 9_999)) == (LeakStep.REPORT, False)


def test_somebody_elses_box_that_staff_stopped_and_that_came_back_is_reported_anew() -> None:
    assert decided(box(name="theirs"), handled("stopped", 600)) == (LeakStep.REPORT, True)


def test_an_open_leak_whose_stop_failed_is_stopped_again() -> None:
    assert decided(box(), KnownLeak(None, None)) == (LeakStep.STOP, False)


words = st.sampled_from(["ready", "idle", "archiving", "archived", "error", "limbo", None])
names = st.sampled_from([MARKER, "theirs", None])
ages = st.none() | st.floats(-1000, 1000).map(stamped)
knowns = st.none() | st.builds(
    KnownLeak,
    st.none() | st.floats(0, 1000).map(ago),
    st.sampled_from(["stopped", "gone", "adopted", "dismissed"]),
)


@given(words, names, ages, knowns, st.none() | st.floats(0, 1000).map(ago))
def test_only_a_box_of_ours_that_is_not_down_is_ever_stopped(
    word: str | None, name: str | None, created: str | None, known: KnownLeak | None, since: datetime | None
) -> None:
    shown = box(word, name=name, createdAt=created)
    leak = decide_leak(shown, known, marker=MARKER, creating_since=since, now=NOW)

    assert leak.why
    if leak.step is LeakStep.STOP:
        assert shown.name == MARKER
        assert word not in ("archiving", "archived", "error")
        assert (age := shown.age(NOW)) is None or age >= timedelta(seconds=60)
    if leak.reopens:
        assert known is not None
        assert known.handled_at is not None
    assert isinstance(leak, Leak)
