"""Rows and answers for tests of the decision."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from runs.decide import (
    Observation,
    Policy,
    RunView,
    Step,
    Trouble,
    TroubleKind,
    Write,
    decide,
)
from runs.states import RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON = NOW + timedelta(seconds=600)
PAST = NOW - timedelta(seconds=1)
POLICY = Policy(interval=1.0, wait=0)
WAITING = Policy(interval=1.0, wait=10)
UNREACHABLE = Trouble(TroubleKind.UNKNOWN, "box_unreachable")
STOPPED = Trouble(TroubleKind.GONE, "box_stopped")
REFUSED = Trouble(TroubleKind.REFUSED, "box_billing_required")
BUSY = Trouble(TroubleKind.RETRY_LATER, "box_rate_limited", 7.0)
STARTING = Trouble(TroubleKind.RETRY_LATER, "box_provider_refused")


def view(state: str = "running", **known: Any) -> RunView:
    sent = {} if known.get("may_dispatch") else {"dispatch_attempted_at": NOW - timedelta(seconds=60)}
    values: dict[str, Any] = {"deadline_at": SOON, **sent, **known}
    return RunView(state=RunState(state), **values)


def fresh(**known: Any) -> RunView:
    """Just claimed for its dispatch."""
    return view("admitted", may_dispatch=True, dispatch_attempted_at=NOW, **known)


def next_of(run: RunView, policy: Policy = POLICY) -> Any:
    return decide(run, None, NOW, policy)


def told(run: RunView, step: Step = Step.POLL, policy: Policy = POLICY, **seen: Any) -> Write:
    action = decide(run, Observation(step, **seen), NOW, policy)
    assert isinstance(action, Write)
    return action


def ended(write: Write) -> tuple[str, str | None] | None:
    return (write.end.state.value, write.end.reason) if write.end else None


CANCELLED = {"cancellation_requested_at": PAST}
LATE = {"deadline_at": PAST}
