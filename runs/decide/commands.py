"""What to ask the box now."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from runs.decide.types import Action, End, Hold, Policy, Rest, RunChanges, RunView, Send, Step, Write
from runs.states import RunState

DURATION_EXCEEDED = "run_duration_exceeded"


def next_command(run: RunView, now: datetime, policy: Policy) -> Action:
    """The one thing that `run` needs now."""
    if run.is_terminal:
        return _after_the_end(run, now)
    must_end = wants_end(run, now)
    if must_end and not was_sent(run):
        return forced_end(run, now)
    if run.is_box_gone:
        return known_end(run, now) or lost(run, now, "box_stopped")
    if must_end and _is_away(run, now, policy):
        return known_end(run, now) or forced_end(run, now)
    if held := _held(run, now):
        return held
    return _command(run, now, policy, must_end)


def wants_end(run: RunView, now: datetime) -> bool:
    """Whether somebody asked for its end, or its time is up."""
    return run.cancellation_requested_at is not None or is_late(run, now)


def is_late(run: RunView, now: datetime) -> bool:
    return now >= run.deadline_at


def was_sent(run: RunView) -> bool:
    """Whether a dispatch may have left: only then can there be something to kill."""
    return run.dispatch_attempted_at is not None and not run.may_dispatch


def known_end(run: RunView, now: datetime, missing: int | None = None) -> Write | None:
    """The end that was already seen, although output may be missing; None if no end was seen."""
    missing = max(0, run.log_size - run.received) if missing is None else missing
    if run.exit_status is not None:
        state = RunState.COMPLETED if run.exit_status == 0 else RunState.FAILED
        return _ended(run, now, End(state, run.failure_reason, missing))
    if run.kill_confirmed is True:
        return _ended(run, now, killed_end(run, missing))
    return None


def killed_end(run: RunView, missing: int = 0) -> End:
    """How a run ends that our kill ended."""
    if run.cancellation_effective_at is not None:
        return End(RunState.CANCELLED, None, missing)
    return End(RunState.TIMED_OUT, DURATION_EXCEEDED, missing)


def forced_end(run: RunView, now: datetime) -> Write:
    """The end that was asked for, of a run that was never sent or whose box cannot be asked.

    Where something may have been sent the kill stays due until it is confirmed.
    """
    if run.cancellation_requested_at is not None and not was_sent(run):
        effective = max(now, run.cancellation_requested_at)
        return Write(None, RunChanges(cancellation_effective_at=effective), End(RunState.CANCELLED))
    end = End(RunState.TIMED_OUT, DURATION_EXCEEDED, max(0, run.log_size - run.received))
    if not was_sent(run):
        return Write(None, RunChanges(), end)
    return Write(_seconds_until_calls(run, now), RunChanges(kill_confirmed=False), end)


def lost(run: RunView, now: datetime, reason: str) -> Write:
    """The end of a run of which nothing more can be learned."""
    return _ended(run, now, End(RunState.LOST, reason, max(0, run.log_size - run.received)), gone=True)


def vanished(run: RunView, now: datetime, reason: str) -> Write:
    """The end of a run that left no account of itself on a living box: what of it may live on there is ended next, and
    nothing new starts beside it before that."""
    end = lost(run, now, reason)
    return replace(end, next_in=0.0, changes=RunChanges(kill_confirmed=False))


def _after_the_end(run: RunView, now: datetime) -> Action:
    if run.kill_confirmed is not False:
        return Rest()
    if run.is_box_gone:
        return Write(None, RunChanges(kill_confirmed=True))
    return _held(run, now) or Send(Step.KILL)


def _is_away(run: RunView, now: datetime, policy: Policy) -> bool:
    """At the deadline: whether the provider is known not to answer, so that waiting for one more answer is in vain."""
    silent = run.is_overdue or run.step_failures >= policy.away_after
    return is_late(run, now) and (silent or _held(run, now) is not None)


def _held(run: RunView, now: datetime) -> Hold | None:
    if run.calls_resume_at is None or run.calls_resume_at <= now:
        return None
    resume = run.calls_resume_at
    return Hold(resume if run.is_terminal or is_late(run, now) else min(resume, run.deadline_at))


def _command(run: RunView, now: datetime, policy: Policy, must_end: bool) -> Action:
    if run.may_dispatch:
        return Send(Step.DISPATCH)
    if run.has_ended:
        return Send(Step.POLL)
    if must_end:
        return Send(Step.KILL)
    if run.state == RunState.ADMITTED:
        return Send(Step.PROBE) if was_sent(run) else Hold(now + timedelta(seconds=policy.interval))
    return Send(Step.POLL, _wait_on_box(run, now, policy))


def _wait_on_box(run: RunView, now: datetime, policy: Policy) -> int:
    """Seconds that a poll may wait on the box: not beyond the deadline, and not while answers are missing."""
    if run.step_failures or run.dead_sightings:
        return 0
    return max(0, min(policy.wait, int((run.deadline_at - now).total_seconds())))


def _seconds_until_calls(run: RunView, now: datetime) -> float:
    return max(0.0, (run.calls_resume_at - now).total_seconds()) if run.calls_resume_at else 0.0


def _ended(run: RunView, now: datetime, end: End, *, gone: bool = False) -> Write:
    """An end; a kill that was sent and not confirmed stays due, unless the box is gone and all its processes with it."""
    if run.kill_confirmed is not False:
        return Write(None, RunChanges(), end)
    if gone:
        return Write(None, RunChanges(kill_confirmed=True), end)
    return Write(_seconds_until_calls(run, now), RunChanges(), end)
