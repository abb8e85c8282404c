"""What follows from a try."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagents_site.webhooks.rules import (
    DELAYS_SECONDS,
    JITTER,
    LONGEST_RETRY_AFTER_SECONDS,
    Answer,
    Verdict,
    decide,
)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_2xx_is_delivered(status: int) -> None:
    assert decide(Answer(status), 7, 0.5).verdict == Verdict.DELIVERED


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 409, 429, 500, 503, 100, 304, None])
def test_everything_else_is_tried_again(status: int | None) -> None:
    assert decide(Answer(status, None if status else "timeout"), 0, 0.5).verdict == Verdict.AGAIN


def test_410_ends_it_at_once() -> None:
    assert decide(Answer(410), 0, 0.5).verdict == Verdict.GONE


def test_there_are_ten_tries_over_a_bit_more_than_three_days() -> None:
    verdicts = [decide(Answer(500), failures, 0.0).verdict for failures in range(10)]

    assert verdicts == [Verdict.AGAIN] * 9 + [Verdict.EXHAUSTED]
    assert 3 <= sum(DELAYS_SECONDS) / 86_400 <= 3.5


@given(st.integers(0, 8), st.floats(0, 1), st.one_of(st.none(), st.floats(0, 1e9)))
def test_a_pause_is_as_long_as_planned_or_asked_for(
    failures: int, chance: float, asked: float | None
) -> None:
    pause = decide(Answer(503, retry_after_seconds=asked), failures, chance).pause_seconds

    assert pause is not None
    assert pause >= DELAYS_SECONDS[failures]
    assert pause >= min(asked or 0, LONGEST_RETRY_AFTER_SECONDS)
    assert pause <= max(DELAYS_SECONDS[failures] * (1 + JITTER), LONGEST_RETRY_AFTER_SECONDS)
