"""Budgets: what an owner, and the installation, may spend in a calendar month (UTC).

Spent is the cost of every box that stopped this month or still runs: the settled cost where it is known, else the estimate
for the time it ran; a creation that was never answered counts nothing. A box counts in the month in which it stops. A spent budget refuses new boxes; those that work go on.
Where it is set so, idle boxes are stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import connection

from base import hooks
from base.clock import database_now
from boxes.activity import idle_since
from boxes.conf import box_api
from boxes.errors import BudgetReached
from boxes.models import Box
from boxes.states import StopReason

log = structlog.get_logger(__name__)

INSTALLATION = "installation"
IDLE_SECONDS = 300
"""A box without activity for this long is idle for a spent budget, which need not wait for the ordinary idle time."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What was spent of a budget, in micro-US-dollars. `user_id` is None for the installation's budget."""

    user_id: UUID | None
    spent_microusd: int
    budget_microusd: int

    @property
    def is_reached(self) -> bool:
        return self.budget_microusd > 0 and self.spent_microusd >= self.budget_microusd

    @property
    def code(self) -> str:
        return "owner_budget_reached" if self.user_id else "budget_reached"

    @property
    def subject(self) -> str:
        return str(self.user_id) if self.user_id else INSTALLATION

    @property
    def detail(self) -> str:
        """The figures, for people."""
        whose = "Your budget" if self.user_id else "The installation's budget"
        figures = f"{_dollars(self.spent_microusd)} of {_dollars(self.budget_microusd)} US dollars"
        return f"{whose} for this month is spent: {figures}."


class SpentBudget(BudgetReached):
    """The month's budget is spent."""

    def __init__(self, spending: Spending) -> None:
        self.spending = spending
        super().__init__(spending.code, spending.detail)


def reached(user_id: UUID | None) -> Spending | None:
    """The budget that stops this owner from having one more box: the owner's, else the installation's; None if none does."""
    conf = box_api()
    if user_id is not None and conf.budget_per_owner_month_microusd:
        own = Spending(user_id, spent_this_month(user_id), conf.budget_per_owner_month_microusd)
        if own.is_reached:
            return own
    if conf.budget_month_microusd:
        whole = Spending(None, spent_this_month(None), conf.budget_month_microusd)
        if whole.is_reached:
            return whole
    return None


def spent_this_month(user_id: UUID | None) -> int:
    """Micro-US-dollars spent in this calendar month (UTC) by the user, or by everybody (None)."""
    with connection.cursor() as cursor:
        if user_id is None:
            cursor.execute(f"select {SPENT} from conversation_boxes box where {THIS_MONTH}")  # noqa: S608 - constants
        else:
            cursor.execute(f"select {SPENT} {_OWNED} where {THIS_MONTH} and visitor.user_id = %s", [user_id])
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


SPENT = """coalesce(sum(coalesce(box.settled_cost_microusd, floor(box.estimated_burn_rate_microusd / 3600.0 * greatest(0,
    extract(epoch from coalesce(box.stopped_at, clock_timestamp()) - box.created_at))))), 0)"""
_OWNED = """from conversation_boxes box join conversations conversation on conversation.id = box.conversation_id
    join visitors visitor on visitor.id = conversation.visitor_id"""
# The statement's time, not the clock's: only what stays the same within a statement can be looked up in an index.
THIS_MONTH = """box.box_id is not null and (box.stopped_at is null
    or box.stopped_at >= date_trunc('month', statement_timestamp() at time zone 'UTC') at time zone 'UTC')"""


def report(spending: Spending) -> bool:
    """Record an incident about a spent budget, once a day and subject; and stop idle boxes where it is set so.

    Returns whether it was recorded now. Never called inside an admission: it must be there although that is refused.
    """
    if box_api().budget_stops_idle_boxes:
        stop_idle_boxes(spending.user_id)
    if not _first_today(spending.subject):
        return False
    log.warning(
        "budget_reached", subject=spending.subject, spent=spending.spent_microusd, of=spending.budget_microusd
    )
    hooks.incident_reporter(
        {
            "surface": "controller",
            "origin": "budget",
            "code": spending.code,
            "correlation_ref": spending.subject,
            "owner_user": spending.user_id,
            "summary": spending.detail,
            "context": {
                "spent_microusd": spending.spent_microusd,
                "budget_microusd": spending.budget_microusd,
            },
        }
    )
    return True


def enforce() -> int:
    """Look at every budget that something running may have passed, and report the spent ones; returns how many are."""
    spent = _spent_budgets()
    for spending in spent:
        report(spending)
    return len(spent)


def stop_idle_boxes(user_id: UUID | None) -> int:
    """Have the idle boxes of the user, or of everybody, stopped by the worker; returns how many."""
    from boxes.stopping import ask_stop  # stopping is above: it promotes what waits for a place

    boxes = list(_running(user_id))
    idle_before = database_now() - timedelta(seconds=IDLE_SECONDS)
    since = idle_since(boxes)
    idle = [box for box in boxes if (moment := since[box.pk]) is not None and moment <= idle_before]
    return sum(ask_stop(box, StopReason.BUDGET_REACHED) for box in idle)


def _running(user_id: UUID | None) -> list[Box]:
    running = Box.objects.filter(stopped_at=None, stop_requested_at=None).exclude(box_id=None)
    return list(running if user_id is None else running.filter(conversation__visitor__user_id=user_id))


def _spent_budgets() -> list[Spending]:
    conf = box_api()
    found = (
        [Spending(None, spent_this_month(None), conf.budget_month_microusd)]
        if conf.budget_month_microusd
        else []
    )
    if conf.budget_per_owner_month_microusd:
        found += [
            Spending(user_id, spent, conf.budget_per_owner_month_microusd)
            for user_id, spent in _spent_by_owner()
        ]
    return [spending for spending in found if spending.is_reached]


def _spent_by_owner() -> list[tuple[UUID, int]]:
    """Of the owners of something running: nothing can pass another's budget."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"select visitor.user_id, {SPENT} {_OWNED} where {THIS_MONTH} and visitor.user_id is not null"
            " group by visitor.user_id having count(*) filter (where box.stopped_at is null) > 0"
        )
        return [(row[0], int(row[1])) for row in cursor.fetchall()]


def _first_today(subject: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into box_budget_notices (subject, day)"
            " values (%s, (clock_timestamp() at time zone 'UTC')::date) on conflict do nothing",
            [subject],
        )
        return bool(cursor.rowcount == 1)


def _dollars(microusd: int) -> str:
    return f"{microusd // 1_000_000:,}.{microusd % 1_000_000:06d}"
