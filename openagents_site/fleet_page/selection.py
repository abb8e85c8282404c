"""What the page shows of the ledgers, read in a fixed number of queries; nothing of it asks the provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import User
from base.amounts import dollars, duration
from base.clock import database_now
from boxes import activity, selectors, usage
from boxes.budgets import spent_this_month
from boxes.conf import box_api
from boxes.lifetime import EndRule
from boxes.models import Box, FanoutItem
from boxes.states import STARTING, UP, BoxState, ItemState, StopReason
from conversations.services import conversation_ids
from openagents_site.fleet_page.runs import PageRun, newest_runs
from openagents_site.fleet_page.text import shown

MAXIMUM_ACTIVE = 50
STOPPED_SHOWN = 5
_RULES = {
    EndRule.TTL: "its time is up",
    EndRule.EXTENDED: "its extended time is up",
    EndRule.MAXIMUM_LIFETIME: "no box lives longer",
}


@dataclass(frozen=True, slots=True)
class PageBox:
    """A box in words. `tone` is one of up, starting, ending, stopped, failed."""

    id: UUID
    label: str
    tone: str
    state: str
    created_at: datetime
    lived: str
    cost: str
    expires_at: datetime | None
    expires_in: str
    expires_because: str
    idle_for: str
    stopped_at: datetime | None
    can_stop: bool
    can_run: bool
    run: PageRun | None


@dataclass(frozen=True, slots=True)
class PageUsage:
    """What the owner spent, in words; `budget` is empty where there is none."""

    month: str
    budget: str
    settled: str
    lifetime: str
    boxes: int
    unsettled: int


@dataclass(frozen=True, slots=True)
class Live:
    """What changes from second to second. `hidden` active boxes are not shown; `waiting` ones wait for a place."""

    boxes: Sequence[PageBox]
    hidden: int
    waiting: int
    stopped: Sequence[PageBox]


def live(owner: User, *, with_output: bool) -> Live:
    """The owner's boxes now. Eight queries. `with_output`: whether the ends of their runs' output come along."""
    mine = selectors.of_user(owner).filter(conversation_id__in=conversation_ids(owner))
    active = list(mine.filter(stopped_at=None)[: MAXIMUM_ACTIVE + 1])
    hidden = mine.filter(stopped_at=None).count() - MAXIMUM_ACTIVE if len(active) > MAXIMUM_ACTIVE else 0
    ended = list(_stopped(mine))
    runs = newest_runs([box.pk for box in (*active, *ended)], with_output=with_output)
    now = database_now()
    active = activity.attach(active[:MAXIMUM_ACTIVE])
    waiting = FanoutItem.objects.filter(conversation__visitor__user=owner, state=ItemState.QUEUED).count()
    return Live(
        boxes=[_active(box, runs.get(box.pk), now) for box in active],
        hidden=hidden,
        waiting=waiting,
        stopped=[_ended(box, runs.get(box.pk)) for box in ended],
    )


def usage_of(owner: User) -> PageUsage:
    """What the owner spent this month and in all. Two queries."""
    totals, budget = usage.for_owner(owner.pk), box_api().budget_per_owner_month_microusd
    return PageUsage(
        month=dollars(spent_this_month(owner.pk)),
        budget=dollars(budget) if budget else "",
        settled=dollars(totals["settled_cost_microusd"]),
        lifetime=duration(totals["lifetime_seconds"]),
        boxes=totals["boxes"],
        unsettled=totals["unsettled_boxes"],
    )


def _stopped(mine: QuerySet[Box]) -> QuerySet[Box]:
    return mine.exclude(stopped_at=None).order_by("-stopped_at", "-id")[:STOPPED_SHOWN]


def _active(box: Box, run: PageRun | None, now: datetime) -> PageBox:
    lived, end = (now - box.created_at).total_seconds(), box.lease_end
    tone, state = _state(box)
    idle = box.idle_since
    return PageBox(
        id=box.pk,
        label=shown(box.label),
        tone=tone,
        state=state,
        created_at=box.created_at,
        lived=duration(lived),
        cost=_cost(box, lived),
        expires_at=end.at if end else None,
        expires_in=duration((end.at - now).total_seconds()) if end else "",
        expires_because=_RULES[end.because] if end else "",
        idle_for=duration((now - idle).total_seconds()) if idle else "",
        stopped_at=None,
        can_stop=box.stop_requested_at is None,
        can_run=tone == "up" and (run is None or run.is_terminal),
        run=run,
    )


def _ended(box: Box, run: PageRun | None) -> PageBox:
    lived = box.lifetime_seconds or 0
    why = StopReason(box.stop_reason).label if box.stop_reason in StopReason.values else "stopped"
    return PageBox(
        id=box.pk,
        label=shown(box.label),
        tone="stopped",
        state=why if why.startswith("stopped") else f"stopped: {why}",
        created_at=box.created_at,
        lived=duration(lived),
        cost=_cost(box, lived),
        expires_at=None,
        expires_in="",
        expires_because="",
        idle_for="",
        stopped_at=box.stopped_at,
        can_stop=False,
        can_run=False,
        run=run,
    )


def _state(box: Box) -> tuple[str, str]:
    if box.stop_requested_at is not None:
        return "ending", "being stopped"
    if box.box_id is None:
        return "starting", "asked for, not answered yet" if box.create_unknown else "being created"
    state = BoxState(box.state)
    if state in UP:
        return "up", state.label
    if state in STARTING:
        return "starting", state.label
    return ("failed" if state is BoxState.ERROR else "ending"), state.label


def _cost(box: Box, lived_seconds: float) -> str:
    """The settled cost; else the estimate that admission goes by, and said to be one."""
    if box.settled_cost_microusd is not None:
        return dollars(box.settled_cost_microusd)
    if box.usage_settled_at is not None:
        return "not known"
    estimate = int(box.estimated_burn_rate_microusd * lived_seconds / 3600)
    return f"about {dollars(estimate)}" if box.estimated_burn_rate_microusd else "not known yet"
