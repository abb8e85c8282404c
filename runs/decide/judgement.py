"""What an answer means, and when to look again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from runs.decide.commands import DURATION_EXCEEDED, forced_end, is_late, known_end, lost, vanished
from runs.decide.pace import backoff, next_poll, until_deadline
from runs.decide.types import (
    End,
    Observation,
    Policy,
    RunChanges,
    RunView,
    Step,
    Trouble,
    TroubleKind,
    Write,
)
from runs.states import RunState

DISPATCH_AMBIGUOUS = "dispatch_ambiguous"
DIRECTORY_MISSING = "run_directory_missing"
PROCESS_MISSING = "process_missing_without_exit_sentinel"
OUT_OF_MEMORY = "out_of_memory"
RESPONSE_INVALID = "box_response_invalid"


def judge(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    """What to write after `seen`."""
    trouble = seen.trouble
    if trouble is not None and trouble.kind == TroubleKind.GONE:
        return _box_gone(run, now, trouble)
    if run.is_terminal:
        return _late_kill(run, seen, now, policy)
    if trouble is not None:
        return _IN_TROUBLE[seen.step](run, trouble, now, policy)
    return _ANSWERED[seen.step](run, seen, now, policy)


def _box_gone(run: RunView, now: datetime, trouble: Trouble) -> Write:
    """Nothing of it runs any more: an end that was seen before stands, otherwise its end is not known."""
    if run.is_terminal:
        return Write(None, RunChanges(kill_confirmed=True))
    return known_end(run, now) or lost(run, now, trouble.code)


def _late_kill(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    if seen.trouble is None and seen.killed:
        return Write(None, RunChanges(kill_confirmed=True, step_failures=0))
    return _again(run, seen.trouble, now, policy, attempts=run.kill_attempts)


# --- dispatch


def _dispatched(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    if seen.never_ran is not None:
        return Write(None, RunChanges(), End(RunState.FAILED, seen.never_ran))
    if seen.pid is None:
        # An answer without a process: somebody else's directory, or a reply that was cut. The probe finds out.
        return Write(0.0, RunChanges(step_failures=0))
    changes = RunChanges(
        state=RunState.DISPATCHED,
        pid=seen.pid,
        dispatched_at=now,
        started_at=now,
        step_failures=0,
        quiet_polls=0,
    )
    return Write(_first_poll(run, now, policy), changes)


def _not_dispatched(run: RunView, trouble: Trouble, now: datetime, policy: Policy) -> Write:
    if trouble.kind == TroubleKind.REFUSED:
        return Write(None, RunChanges(), End(RunState.FAILED, trouble.code))
    if trouble.kind == TroubleKind.UNKNOWN:
        return Write(0.0, RunChanges(step_failures=0))
    # It is certain that it did not run: the right to dispatch is given back.
    again = _again(run, trouble, now, policy, attempts=run.step_failures + 1)
    again.changes["dispatch_attempted_at"] = None
    return again


# --- probe


def _probed(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    if seen.present is None:
        return _again(
            run, Trouble(TroubleKind.UNKNOWN, RESPONSE_INVALID), now, policy, attempts=run.step_failures + 1
        )
    if not seen.present:
        # From here on it cannot start: the probe has taken its place.
        return lost(run, now, DISPATCH_AMBIGUOUS)
    started = run.dispatch_attempted_at or now
    changes = RunChanges(state=RunState.DISPATCHED, dispatched_at=now, started_at=started, step_failures=0)
    if seen.pid is not None:
        changes["pid"] = seen.pid
    return Write(_first_poll(run, now, policy), changes)


# --- poll


def _polled(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    if seen.present is None:
        return _again(
            run, Trouble(TroubleKind.UNKNOWN, RESPONSE_INVALID), now, policy, attempts=run.step_failures + 1
        )
    if not seen.present:
        return known_end(run, now) or vanished(run, now, DIRECTORY_MISSING)
    if run.kill_confirmed is True:
        return _drain(run, seen, now, policy, RunChanges(step_failures=0))
    if seen.exit_status is not None:
        return _drain(run, seen, now, policy, _exit(seen))
    if run.exit_status is not None:
        return _drain(run, seen, now, policy, RunChanges(step_failures=0))
    if seen.alive is False:
        return _seen_dead(run, seen, now, policy)
    return _seen_alive(run, seen, now, policy)


def _exit(seen: Observation) -> RunChanges:
    changes = RunChanges(exit_status=seen.exit_status, exit_signal=seen.exit_signal, step_failures=0)
    if seen.out_of_memory:
        changes["failure_reason"] = OUT_OF_MEMORY
    return changes


def _drain(run: RunView, seen: Observation, now: datetime, policy: Policy, changes: RunChanges) -> Write:
    """Its end is known: end it once its output is complete."""
    missing = _missing(run, seen)
    after = _after(run, seen, changes)
    if missing and seen.received == 0:
        return _drained_nothing(run, seen, now, policy, changes)
    if missing and not _has_drained_enough(after, now, policy):
        return Write(0.0, RunChanges(**changes, quiet_polls=0))
    end = known_end(after, now, missing)
    assert end is not None, "draining without a known end"
    return _with(end, changes)


def _drained_nothing(
    run: RunView, seen: Observation, now: datetime, policy: Policy, changes: RunChanges
) -> Write:
    """A look that brought nothing, although something is missing. Calls without an answer are no such looks."""
    looks = run.quiet_polls + 1 if run.has_ended else 1
    end = known_end(_after(run, seen, changes), now, _missing(run, seen))
    if end and (looks >= policy.drain_attempts or (is_late(run, now) and not seen.is_cut)):
        return _with(end, changes)
    stuck = _again(run, None, now, policy, attempts=looks)
    stuck.changes.update({**changes, "step_failures": run.step_failures + 1, "quiet_polls": looks})
    return replace(stuck, next_in=0.0) if seen.is_cut else stuck


def _has_drained_enough(run: RunView, now: datetime, policy: Policy) -> bool:
    """Whether the rest of a log that is too long is given up, so that the run comes to its end."""
    ends = [run.deadline_at, *([run.cancellation_effective_at] if run.cancellation_effective_at else [])]
    return now >= min(ends) + timedelta(seconds=policy.longest_drain)


def _missing(run: RunView, seen: Observation) -> int:
    """Bytes of its log that are still on the box; what its children print after its end does not count."""
    size = seen.log_size or 0
    target = size if seen.log_end is None else min(seen.log_end, size)
    return max(0, target - run.received - seen.received)


def _seen_dead(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    """No process and no exit status: believed only when seen again, and not of a run that may be just starting."""
    if _may_be_starting(run, seen, now):
        return Write(until_deadline(run, now, policy.interval), RunChanges(step_failures=0))
    sightings = run.dead_sightings + 1
    changes = RunChanges(dead_sightings=sightings, step_failures=0)
    missing = _missing(run, seen)
    if sightings < policy.sightings:
        return Write(min(policy.interval, 0.5), changes)
    if missing and seen.received and not _has_drained_enough(run, now, policy):
        return Write(0.0, RunChanges(dead_sightings=policy.sightings, step_failures=0))
    if missing and seen.is_cut and sightings < policy.sightings + policy.drain_attempts:
        return Write(0.0, RunChanges(dead_sightings=sightings, step_failures=run.step_failures + 1))
    after = replace(run, received=run.received + seen.received, log_size=seen.log_size or 0)
    return _with(vanished(after, now, OUT_OF_MEMORY if seen.out_of_memory else PROCESS_MISSING), changes)


def _may_be_starting(run: RunView, seen: Observation, now: datetime) -> bool:
    if run.pid is not None or seen.pid is not None or run.dispatch_attempted_at is None:
        return False
    return now < run.dispatch_attempted_at + timedelta(seconds=45)


def _seen_alive(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    changes = RunChanges(state=RunState.RUNNING)
    if run.started_at is None:
        changes["started_at"] = now
    if run.pid is None and seen.pid is not None:
        changes["pid"] = seen.pid
    quiet = 0 if seen.received else run.quiet_polls + 1
    # An answer that was cut is asked for again in smaller pieces: the shell goes by the count of failures.
    failures = run.step_failures + 1 if seen.is_cut else 0
    changes.update(RunChanges(step_failures=failures, dead_sightings=0, quiet_polls=quiet))
    return Write(next_poll(run, seen, now, policy), changes)


# --- kill


def _killed(run: RunView, seen: Observation, now: datetime, policy: Policy) -> Write:
    if seen.killed is None:
        return _not_killed(run, Trouble(TroubleKind.UNKNOWN, RESPONSE_INVALID), now, policy)
    if seen.exit_status is not None:
        # It had ended by itself before the kill came: that is its end.
        changes = _exit(seen)
        if seen.killed:
            changes["kill_confirmed"] = True
        return _drain(run, seen, now, policy, changes)
    if seen.killed:
        changes = RunChanges(kill_confirmed=True, step_failures=0)
        if run.cancellation_requested_at is not None:
            changes["cancellation_effective_at"] = max(now, run.cancellation_requested_at)
        return _drain(run, seen, now, policy, changes)
    if is_late(run, now):
        return _with(forced_end(run, now), RunChanges(kill_confirmed=False))
    return _again(run, None, now, policy, attempts=run.kill_attempts)


def _not_killed(run: RunView, trouble: Trouble, now: datetime, policy: Policy) -> Write:
    again = _again(run, trouble, now, policy, attempts=run.step_failures + 1)
    if not is_late(run, now):
        return again
    end = End(RunState.TIMED_OUT, DURATION_EXCEEDED, max(0, run.log_size - run.received))
    pause = max(trouble.retry_after_seconds or 0.0, backoff(policy, run.step_failures + 1))
    return Write(pause, RunChanges(**again.changes, kill_confirmed=False), end)


def _no_answer(run: RunView, trouble: Trouble, now: datetime, policy: Policy) -> Write:
    """A probe or a poll without an answer proves nothing: ask again. A run that is past its deadline with a known end
    does not wait for the rest of its output."""
    if run.has_ended and is_late(run, now) and (end := known_end(run, now)):
        return end
    return _again(run, trouble, now, policy, attempts=run.step_failures + 1)


def _again(run: RunView, trouble: Trouble | None, now: datetime, policy: Policy, *, attempts: int) -> Write:
    """Ask again after a growing pause, or when the provider said; at the deadline at the latest."""
    changes = (
        RunChanges(step_failures=run.step_failures + 1)
        if trouble is not None
        else RunChanges(step_failures=0)
    )
    pause = backoff(policy, attempts)
    if trouble is not None and trouble.retry_after_seconds is not None:
        pause = max(trouble.retry_after_seconds, backoff(policy, 1))
        changes["calls_resume_at"] = now + timedelta(seconds=pause)
    return Write(until_deadline(run, now, pause), changes)


def _first_poll(run: RunView, now: datetime, policy: Policy) -> float:
    pause = policy.first_look if policy.wait else policy.fastest
    return until_deadline(run, now, min(pause, policy.interval))


def _after(run: RunView, seen: Observation, changes: RunChanges) -> RunView:
    """The run as it will be once `changes` and the received output are written."""
    return replace(
        run,
        received=run.received + seen.received,
        exit_status=changes.get("exit_status", run.exit_status),
        failure_reason=changes.get("failure_reason", run.failure_reason),
        kill_confirmed=changes.get("kill_confirmed", run.kill_confirmed),
        cancellation_effective_at=changes.get("cancellation_effective_at", run.cancellation_effective_at),
    )


def _with(write: Write, changes: RunChanges) -> Write:
    return Write(write.next_in, RunChanges(**{**changes, **write.changes}), write.end)


_Trouble = Callable[[RunView, Trouble, datetime, Policy], Write]
_Answer = Callable[[RunView, Observation, datetime, Policy], Write]
_IN_TROUBLE: dict[Step, _Trouble] = {
    Step.DISPATCH: _not_dispatched,
    Step.PROBE: _no_answer,
    Step.POLL: _no_answer,
    Step.KILL: _not_killed,
}
_ANSWERED: dict[Step, _Answer] = {
    Step.DISPATCH: _dispatched,
    Step.PROBE: _probed,
    Step.POLL: _polled,
    Step.KILL: _killed,
}
