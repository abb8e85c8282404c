"""Money and time as people read them."""

from __future__ import annotations

import pytest

from base.amounts import dollars, duration


@pytest.mark.parametrize(
    ("microusd", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (80, "$0.00008"), (9_999, "$0.009999"), (10_000, "$0.01"), (1_234_567, "$1.23"),
     (1_234_567_890_123, "$1,234,567.89"), (-2_500_000, "-$2.50")],
)  # fmt: skip
def test_money(microusd: int, text: str) -> None:
    assert dollars(microusd) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3900, "1 h 05 min"), (90_000, "1 d 1 h")],
)
def test_time(seconds: float, text: str) -> None:
    assert duration(seconds) == text
