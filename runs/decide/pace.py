"""When to look again."""

from __future__ import annotations

from datetime import datetime

from runs.decide.types import Observation, Policy, RunView


def next_poll(run: RunView, seen: Observation, now: datetime, policy: Policy) -> float:
    """Seconds until the next poll of a living run.

    A poll that waited on the box has used the time until the next look already. Without such waiting: fast while the run
    is young or prints, then slower with every poll without news, up to the interval.
    """
    if _bytes_left(run, seen) or _is_worth_less(run, seen, policy):
        pause = 0.0
    elif seen.received:
        pause = policy.talking
    elif seen.asked_to_wait and seen.waited_seconds >= seen.asked_to_wait / 2:
        pause = 0.0
    elif _is_young(run, now, policy):
        pause = policy.fastest
    else:
        pause = policy.talking * 2.0 ** min(run.quiet_polls, 10)
    return until_deadline(run, now, min(pause, policy.interval))


def backoff(policy: Policy, attempts: int) -> float:
    """Seconds after the `attempts`-th call in a row that brought nothing."""
    first = min(policy.interval, 1.0)
    return float(
        min(first * 2.0 ** min(max(attempts - 1, 0), 10), max(policy.longest_backoff, policy.interval))
    )


def until_deadline(run: RunView, now: datetime, pause: float) -> float:
    """`pause`, but not beyond the deadline of a run that is still alive: then it has to end."""
    if run.is_terminal or run.has_ended:
        return pause
    return max(0.0, min(pause, (run.deadline_at - now).total_seconds()))


def _is_worth_less(run: RunView, seen: Observation, policy: Policy) -> bool:
    """Whether an answer was cut, so that a smaller piece is asked for at once."""
    return seen.is_cut and run.step_failures < policy.drain_attempts


def _bytes_left(run: RunView, seen: Observation) -> bool:
    return bool(seen.received) and (seen.log_size or 0) > run.received + seen.received


def _is_young(run: RunView, now: datetime, policy: Policy) -> bool:
    return run.started_at is None or (now - run.started_at).total_seconds() < policy.young
