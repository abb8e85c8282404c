"""What is to be done about a delegation now. Pure: facts in, one action out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

ANSWER_GRACE = timedelta(seconds=15)
"""A machine has this much longer than the delegation may take, and this long after it came back, to tell its result."""

ACCEPT_WITHIN = timedelta(seconds=60)
"""A connected machine takes what it is offered at once; one that does not in this time is not well."""

NOT_LOOKED_AT = timedelta(seconds=15)
"""If a wait ended this long ago, nobody was there to see the machine come back, and the wait begins anew."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known. The times of the machine are None where there were none."""

    now: datetime
    started_at: datetime
    timeout: timedelta
    online: bool
    offline_at: datetime | None
    """When the machine counts as offline unless it is heard of."""
    connected_at: datetime | None
    resumes: bool
    """Whether there is a session to go on with."""
    offered_at: datetime | None = None
    accepted_at: datetime | None = None
    absent_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    reconnect: timedelta


@dataclass(frozen=True, slots=True)
class Offer:
    """Tell the machine what is to be done."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before `until`. `absent_until`: until when a machine that is gone is waited for."""

    until: datetime
    absent_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """End it; the machine hears of it when it can."""

    code: str


Action = Offer | Wait | Fail


def decide(facts: Facts, policy: Policy) -> Action:
    """The one thing to do now."""
    if facts.offered_at is None:
        return _not_offered(facts, policy)
    if not facts.online:
        return _absent(facts, policy)
    connected_at = facts.connected_at or facts.offered_at
    if facts.accepted_at is None:
        accept_by = max(facts.offered_at, connected_at) + ACCEPT_WITHIN
        if facts.now >= accept_by:
            return Fail("machine_timeout")
        return _wait(facts, accept_by)
    answer_by = max(facts.offered_at + facts.timeout, connected_at) + ANSWER_GRACE
    return Fail("timeout") if facts.now >= answer_by else _wait(facts, answer_by)


def _not_offered(facts: Facts, policy: Policy) -> Action:
    if facts.online:
        return Offer()
    wait_ends = facts.started_at + policy.reconnect
    if facts.resumes and facts.now < wait_ends:
        return Wait(wait_ends)
    return Fail("machine_offline")


def _absent(facts: Facts, policy: Policy) -> Action:
    """The machine had the offer, and is gone: what it does meanwhile is not known, so it may come back and tell."""
    absent_until = facts.absent_until
    if absent_until is None or facts.now > absent_until + NOT_LOOKED_AT:
        absent_until = facts.now + policy.reconnect
    if facts.now < absent_until:
        return Wait(absent_until, absent_until)
    return Fail("machine_disconnected")


def _wait(facts: Facts, until: datetime) -> Wait:
    """Until the time is up, or the machine has been silent for so long that it counts as gone."""
    return Wait(until if facts.offline_at is None else min(until, facts.offline_at))
