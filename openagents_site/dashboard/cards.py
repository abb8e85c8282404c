"""The figures in words, each with a link to the list of just what it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from base.amounts import dollars, duration
from boxes.conf import BoxApi
from boxes.states import BoxState
from forge.states import LIVE
from openagents_site.dashboard.figures import Now, Queue
from openagents_site.dashboard.questions import UNRESOLVED
from runs import states as run_states
from work import states as work_states

UNKNOWN = "not known"
NOT_ASKED = "the database did not answer"


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a card's figure."""

    name: str
    value: str
    link: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One figure. `model` is whose list it leads to; `share` is how much of a ceiling is used, in percent."""

    title: str
    value: str
    said: str
    link: str
    model: str
    tone: str = ""
    share: int | None = None
    lines: Sequence[Line] = field(default=())


def listing(model: str, **filters: Any) -> str:
    """The address of a model's list with these filters."""
    app, name = model.split(".")
    address = reverse(f"admin:{app}_{name}_changelist")
    return f"{address}?{urlencode(filters)}" if filters else address


def cards(now: Now, conf: BoxApi, at: datetime) -> list[Card]:
    """What goes on, what it costs, and what is to be looked after. `at` is the database's time."""
    return [
        _boxes(now, conf),
        _runs(now),
        *_spending(now, conf, at),
        _leaks(now),
        _incidents(now),
        _ended(now, at),
    ]


def queue_lines(queues: Sequence[Queue]) -> list[Line]:
    """What is due and waits, the longest first, with a link where there is a list of it."""
    waiting = sorted(queues, key=lambda queue: -queue.oldest_seconds)
    return [
        Line(
            name=queue.name.replace("_", " "),
            value=f"{queue.due:,} due, the oldest for {duration(queue.oldest_seconds)}"
            if queue.due
            else "nothing is due",
            link=_QUEUES[queue.name]() if queue.name in _QUEUES else "",
            tone="bad" if queue.oldest_seconds > WAITS_LONG_SECONDS and queue.name not in MAY_WAIT else "",
        )
        for queue in waiting
    ]


WAITS_LONG_SECONDS = 300.0
MAY_WAIT = frozenset({"queued_boxes"})  # they wait for a place, not for a worker


def _joined(states: Sequence[str]) -> str:
    return ",".join(str(state) for state in states)


_ACTIVE_RUNS = _joined(run_states.ACTIVE)
_ACTIVE_JOBS = _joined(work_states.ACTIVE)
_QUEUES = {
    "provisioning": lambda: listing("boxes.box", next_provision_at__isnull=False),
    "settlement": lambda: listing("boxes.box", next_settlement_at__isnull=False),
    "looks": lambda: listing("boxes.webhookdelivery", looked_at__isnull=True),
    "runs": lambda: listing("runs.run", state__in=_ACTIVE_RUNS),
    "jobs": lambda: listing("work.job", status__in=_ACTIVE_JOBS, kind="deep_work"),
    "delegations": lambda: listing("work.job", status__in=_ACTIVE_JOBS, kind="delegation"),
    "assignments": lambda: listing("forge.assignment", state__in=_joined(LIVE)),
    "webhook_events": lambda: listing("webhooks.event", fanned_out_at__isnull=True),
    "webhooks": lambda: listing("webhooks.delivery", next_attempt_at__isnull=False),
    "queued_boxes": lambda: listing("boxes.fanoutrequest", state="queued"),
    "scheduled_tasks": lambda: listing("django_q.ormq"),
}


def _boxes(now: Now, conf: BoxApi) -> Card:
    active = _total(now.boxes)
    ceiling = conf.maximum_active_boxes_global
    said = f"of {ceiling} at most"
    if active is not None:
        said += f"; about {dollars(now.burn_rate_microusd)} an hour"
    return Card(
        title="Active boxes",
        value=_shown(active),
        said=said,
        link=listing("boxes.box", stopped_at__isnull=True),
        model="boxes.box",
        tone="bad" if active is not None and active >= ceiling else "",
        share=_share(active, ceiling),
        lines=[
            Line(
                BoxState(state).label,
                f"{count:,}",
                listing("boxes.box", stopped_at__isnull=True, state=state),
            )
            for state, count in _found(now.boxes)
        ],
    )


def _runs(now: Now) -> Card:
    oldest = (
        f"the oldest for {duration(now.oldest_run_seconds)}" if now.oldest_run_seconds else "nothing runs"
    )
    return Card(
        title="Runs now",
        value=_shown(_total(now.runs)),
        said=_known(now.runs, oldest),
        link=listing("runs.run", state__in=_ACTIVE_RUNS),
        model="runs.run",
        lines=[
            Line(run_states.RunState(state).label, f"{count:,}", listing("runs.run", state=state))
            for state, count in _found(now.runs)
        ],
    )


def _spending(now: Now, conf: BoxApi, at: datetime) -> list[Card]:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    ceiling, month = conf.budget_month_microusd, now.spent_month_microusd
    return [
        Card(
            title="Spent today",
            value=UNKNOWN if now.spent_today_microusd is None else dollars(now.spent_today_microusd),
            said="since midnight UTC; estimated where it is not settled",
            link=listing("boxes.box", stopped_at__gte=midnight.isoformat()),
            model="boxes.box",
        ),
        Card(
            title="Spent this month",
            value=UNKNOWN if month is None else dollars(month),
            said=f"of {dollars(ceiling)}" if ceiling else "no ceiling is set",
            link=listing("boxes.box", stopped_at__gte=midnight.replace(day=1).isoformat()),
            model="boxes.box",
            tone="bad" if ceiling and month is not None and month >= ceiling else "",
            share=_share(month, ceiling),
        ),
    ]


def _leaks(now: Now) -> Card:
    filters = {"handled_at__isnull": True, "event_type": "leak"}
    names = {"true": "ours by name", "false": "not ours by name"}
    open_leaks = _total(now.leaks)
    return Card(
        title="Open leaks",
        value=_shown(open_leaks),
        said=_known(
            now.leaks,
            "boxes at the provider that no row claims"
            if open_leaks
            else "every box at the provider is claimed",
        ),
        link=listing("boxes.reconciliationevent", **filters),
        model="boxes.reconciliationevent",
        tone="bad" if open_leaks else "",
        lines=[
            Line(
                names[owned],
                f"{count:,}",
                listing("boxes.reconciliationevent", owned=owned == "true", **filters),
            )
            for owned, count in _found(now.leaks)
        ],
    )


def _incidents(now: Now) -> Card:
    unresolved = _total(now.incidents)
    return Card(
        title="Open incidents",
        value=_shown(unresolved),
        said=_known(now.incidents, "nobody has resolved" if unresolved else "nothing is to be looked after"),
        link=listing("work.incident", status__in=_joined(UNRESOLVED)),
        model="work.incident",
        tone="bad" if unresolved else "",
        lines=[
            Line(
                work_states.IncidentStatus(status).label,
                f"{count:,}",
                listing("work.incident", status=status),
            )
            for status, count in _found(now.incidents)
        ],
    )


def _ended(now: Now, at: datetime) -> Card:
    since = {"admitted_at__gte": (at - timedelta(days=1)).isoformat()}
    return Card(
        title="Runs of 24 hours, by their end",
        value=_shown(_total(now.ended_last_day)),
        said="accepted in the last 24 hours and ended",
        link=listing("runs.run", state__in=_joined(run_states.TERMINAL), **since),
        model="runs.run",
        lines=[
            Line(state.replace("_", " "), f"{count:,}", listing("runs.run", state=state, **since))
            for state, count in _found(now.ended_last_day)
        ],
    )


def _total(counts: Mapping[str, int] | None) -> int | None:
    return None if counts is None else sum(counts.values())


def _found(counts: Mapping[str, int] | None) -> list[tuple[str, int]]:
    return sorted((counts or {}).items(), key=lambda pair: (-pair[1], pair[0]))


def _known(counts: Mapping[str, int] | None, said: str) -> str:
    """What is said of figures that are there; without them nothing is, least of all that all is well."""
    return NOT_ASKED if counts is None else said


def _shown(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _share(used: int | None, ceiling: int) -> int | None:
    return min(100, used * 100 // ceiling) if ceiling and used is not None else None
