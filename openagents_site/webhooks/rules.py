"""What follows from a try: pure functions, without a clock, a database or a network."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DELAYS_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Pauses after the first failure, the second and so on: ten tries over a bit more than three days."""

JITTER = 0.1
"""A pause is longer by up to this part of it, so that what failed together is not tried again together."""

LONGEST_RETRY_AFTER_SECONDS = 86_400.0
GONE = 410


class Verdict(StrEnum):
    DELIVERED = "delivered"
    AGAIN = "again"
    EXHAUSTED = "exhausted"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a receiver answered: with a status, or not at all, and then why. `retry_after_seconds` is what it asked for."""

    status: int | None = None
    error: str | None = None
    retry_after_seconds: float | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of the delivery; `pause_seconds` until the next try, if there is one."""

    verdict: Verdict
    pause_seconds: float | None = None


def decide(answer: Answer, failures: int, chance: float) -> Decision:
    """What becomes of a delivery after a try. `failures` before this one; `chance` from 0 to 1 spreads the pauses.

    2xx: delivered. 410: nobody is there any more. Everything else, redirects too, is tried again until the pauses are used up.
    """
    if answer.status is not None and 200 <= answer.status < 300:
        return Decision(Verdict.DELIVERED)
    if answer.status == GONE:
        return Decision(Verdict.GONE)
    if failures >= len(DELAYS_SECONDS):
        return Decision(Verdict.EXHAUSTED)
    pause = DELAYS_SECONDS[failures] * (1 + JITTER * chance)
    asked = min(answer.retry_after_seconds or 0.0, LONGEST_RETRY_AFTER_SECONDS)
    return Decision(Verdict.AGAIN, max(pause, asked))
