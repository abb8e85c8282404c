"""The money rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from localbox.usage import Stretch, usage

instants = st.floats(min_value=0, max_value=4e9, allow_nan=False)
stretches = st.lists(
    st.builds(
        lambda start, length, multiplier: Stretch(start, start + length, multiplier),
        instants,
        st.floats(min_value=0, max_value=1e6),
        st.sampled_from([0.5, 1, 2, 50 / 9]),
    ),
    max_size=5,
)


def test_a_large_box_of_ten_minutes_is_twenty_minutes() -> None:
    used = usage([Stretch(1_000, 1_600, 2)], since=0, until=9_000, now=9_000)

    assert (used.seconds, used.dollars, used.running) == (1_200, 0.012, False)


def test_a_box_that_is_up_counts_until_now() -> None:
    used = usage([Stretch(1_000, None, 1)], since=0, until=9_000, now=1_050)

    assert (used.seconds, used.until, used.running) == (50, 1_050, True)


def test_a_stretch_is_split_at_the_edges_of_the_window() -> None:
    used = usage([Stretch(1_000, 2_000, 1), Stretch(3_000, 4_000, 1)], since=1_900, until=3_100, now=9_000)

    assert used.seconds == 200


def test_time_between_stretches_is_not_charged() -> None:
    used = usage([Stretch(0, 10.4, 1), Stretch(1_000, 1_010.4, 1)], since=0, until=5_000, now=5_000)

    assert used.seconds == 21  # rounded once, not twice


@given(known=stretches, split=instants)
def test_two_windows_that_meet_add_up_to_the_whole(known: list[Stretch], split: float) -> None:
    parts = [usage(known, since=0, until=split, now=5e9), usage(known, since=split, until=5e9, now=5e9)]
    whole = usage(known, since=0, until=5e9, now=5e9)

    assert abs(sum(part.seconds for part in parts) - whole.seconds) <= 1


@given(known=stretches, now=instants, later=st.floats(min_value=0, max_value=1e6))
def test_usage_never_goes_down_as_time_passes(known: list[Stretch], now: float, later: float) -> None:
    first = usage(known, since=0, until=5e9, now=now)
    second = usage(known, since=0, until=5e9, now=now + later)

    assert 0 <= first.seconds <= second.seconds
