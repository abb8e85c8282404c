"""Settling what a stopped box cost, once, from the provider's own figure.

Asked for a while after the stop, since the figure is not final before the box is down: look at the box; a cost in the
answer settles; else, once it is archived, its usage is read. A box that is gone, and one without a figure after a day, settle
as *unknown*: `usage_settled_at` is set and the cost stays null.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from base import leases, pump
from base.backoff import Backoff
from base.clock import database_now
from base.faults import declare, fault_point
from base.pump import Holder, Outcome
from boxes.client import BoxClient, Gate, client
from boxes.errors import ProviderCode, ProviderError, Refused, RetryLater
from boxes.states import BoxState

log = structlog.get_logger(__name__)
ANSWERED = declare(
    "boxes.settlement.answered", "the provider has said what a box cost, nothing is written yet"
)
DRIVER = "settlement"
SLOTS = 8
AT_ONCE = 256  # rows that a pass leases at once: few enough to be done before their leases end
GIVE_UP_AFTER = timedelta(hours=24)
PAUSES = Backoff(first=timedelta(seconds=2), cap=timedelta(minutes=10))


@dataclass(frozen=True, slots=True)
class Task:
    """A stopped box whose cost is asked for. `is_last`: a day has passed, whatever comes settles it."""

    pk: UUID
    box_id: str | None
    generation: int
    attempts: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """What settles a row; `cost_microusd` None is *unknown*. `is_down`: the box was seen to have come down."""

    cost_microusd: int | None
    is_down: bool = False


def ask(provider: BoxClient, task: Task) -> Figure | None:
    """The figure that settles the box, or None if it is too early. Raises ProviderError."""
    if task.box_id is None:
        return Figure(None)
    try:
        box = provider.get(task.box_id)
        is_down = box.state == BoxState.ARCHIVED or box.is_terminal
        if box.cost_microusd is not None:
            return Figure(box.cost_microusd, is_down)
        if not is_down:
            return None
        usage = provider.usage(task.box_id)
        fault_point(ANSWERED)
    except Refused as error:
        if error.code == ProviderCode.NOT_FOUND:
            return Figure(None, is_down=True)
        raise
    return None if usage.running or usage.cost_microusd is None else Figure(usage.cost_microusd, is_down)


class SettlementDriver:
    """Drives stopped rows whose usage is due. See `base.pump.Driver`.

    With `due_by` only what is due by then is taken, and rows, too, for which nobody said when they are due (written by
    hand, or adopted).
    """

    name = DRIVER
    slots = SLOTS

    def __init__(self, *, gate: Gate | None = None, due_by: datetime | None = None) -> None:
        self._gate = gate or Gate()
        self._due_by = due_by

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        due = "box.next_settlement_at <= coalesce(%s, clock_timestamp())"
        if self._due_by is not None:
            due = f"({due} or box.next_settlement_at is null)"
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                with due as materialized (
                    select id from conversation_boxes box
                    where box.stopped_at is not null and box.usage_settled_at is null and {due} and {leases.free("box")}
                    order by box.next_settlement_at limit %s for update skip locked)
                update conversation_boxes box set {leases.take("box")}
                from due where box.id = due.id
                returning box.id, box.box_id, box.generation, box.settlement_attempts,
                          box.stopped_at < clock_timestamp() - make_interval(secs => %s)
                """,  # noqa: S608 - constants of ours
                [self._due_by, limit, holder.owner, holder.lease_seconds, GIVE_UP_AFTER.total_seconds()],
            )
            return [Task(*row) for row in cursor.fetchall()]

    def perform(self, task: Task) -> Figure | None:
        return ask(client(gate=self._gate), task)

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            figure = outcome.answer if outcome.error is None else None
            pause = _pause_asked_for(outcome.error)
            if figure is not None:
                _write(outcome.task, figure)
            elif pause is not None:
                _put_off(outcome.task, pause)
            elif outcome.task.is_last:
                _write(outcome.task, Figure(None))
            else:
                _again(outcome.task, _code(outcome.error))

    def seconds_until_due(self) -> float | None:
        with connection.cursor() as cursor:
            cursor.execute(_NEXT_DUE)
            row = cursor.fetchone()
        return float(row[0]) if row else None


_NEXT_DUE = f"""
    select extract(epoch from box.next_settlement_at - clock_timestamp()) from conversation_boxes box
    where box.next_settlement_at is not null and box.usage_settled_at is null and {leases.free("box")}
    order by box.next_settlement_at limit 1
"""  # noqa: S608


def settle_due(*, gate: Gate | None = None, ends_at: float = math.inf) -> int:
    """Settle everything that is due now, once, rows without a due time too; how many rows were asked about.

    Ends early when the provider asks to be left alone, or at `ends_at` (on `time.monotonic`).
    """
    gate, asked = gate or Gate(), 0
    driver = SettlementDriver(gate=gate, due_by=database_now())
    while not gate.seconds_left() and time.monotonic() < ends_at:
        claimed = pump.run_once([driver], limit=AT_ONCE).claimed
        asked += claimed
        if claimed < AT_ONCE:
            break
    return asked


def _write(task: Task, figure: Figure) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update conversation_boxes box set usage_settled_at = clock_timestamp(), next_settlement_at = null,
                settled_cost_microusd = coalesce(box.settled_cost_microusd, %s), {leases.RELEASE},
                state = case when %s and box.state = '{BoxState.ARCHIVING}' then '{BoxState.ARCHIVED}' else box.state end
            where box.id = %s and box.generation = %s and box.usage_settled_at is null
            """,  # noqa: S608
            [figure.cost_microusd, figure.is_down, task.pk, task.generation],
        )
        written = bool(cursor.rowcount == 1)
    if written:
        log.info("usage_settled", box=str(task.pk), cost_microusd=figure.cost_microusd)
    return written


def _again(task: Task, code: str | None) -> bool:
    pause = PAUSES.after(task.attempts + 1).total_seconds()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update conversation_boxes box set settlement_attempts = box.settlement_attempts + 1,
                next_settlement_at = clock_timestamp() + make_interval(secs => %s),
                reconciliation_error = coalesce(%s, box.reconciliation_error), {leases.RELEASE}
            where box.id = %s and box.generation = %s and box.usage_settled_at is null
            """,  # noqa: S608
            [pause, code, task.pk, task.generation],
        )
        return bool(cursor.rowcount == 1)


def _put_off(task: Task, seconds: float) -> bool:
    """The provider asked to be left alone: that is no look without a figure."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update conversation_boxes box set {leases.RELEASE},
                next_settlement_at = clock_timestamp() + make_interval(secs => %s)
            where box.id = %s and box.generation = %s and box.usage_settled_at is null
            """,  # noqa: S608
            [seconds, task.pk, task.generation],
        )
        return bool(cursor.rowcount == 1)


def _pause_asked_for(error: Any) -> float | None:
    return error.retry_after_seconds if isinstance(error, RetryLater) else None


def _code(error: Any) -> str | None:
    if error is None:
        return None
    return str(error.code) if isinstance(error, ProviderError) else "internal_error"
