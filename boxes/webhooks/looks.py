"""The worker's driver of rows that a delivery spoke of: each is looked at once, between two passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog
from django.db import connection

from base import notify
from base.clock import database_now
from base.pump import Holder, Outcome
from boxes.client import Gate, client
from boxes.conf import box_api
from boxes.errors import ProviderError
from boxes.reconciler.carry_out import write_decisions
from boxes.reconciler.decide import decide
from boxes.reconciler.rows import policy_of, rows_with_ids
from boxes.reconciler.types import Decision, End, Note, PassResult, Row, Seen, Stop
from boxes.states import StopReason
from boxes.webhooks.deliveries import DRIVER

log = structlog.get_logger(__name__)
SLOTS = 8


@dataclass(frozen=True, slots=True)
class Task:
    """A row as it was before the look."""

    row: Row


class LookDriver:
    """One look a task. See `base.pump.Driver`.

    What the look shows is decided about as in a pass, and only what needs no further call is written here: the rest is
    left to the next pass, for which the row is due. A look that is lost with its worker is made by that pass.
    """

    name = DRIVER
    slots = SLOTS

    def __init__(self) -> None:
        self._gate = Gate()

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        """The rows that deliveries spoke of, each once. Taking a delivery is all the claim there is."""
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, [limit])
            ids = {row[0] for row in cursor.fetchall() if row[0] is not None}
        rows = rows_with_ids(list(ids))
        return [Task(row) for row in rows if row.stopped_at is None and row.box_id and row.is_askable]

    def perform(self, task: Task) -> Seen:
        """What the provider shows of the box. Raises ProviderError."""
        return Seen(client(gate=self._gate).get(str(task.row.box_id)))

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """Write what was seen, unless the row changed meanwhile."""
        policy, now = policy_of(box_api()), database_now()
        decisions: list[Decision] = []
        for outcome in outcomes:
            if isinstance(outcome.answer, Seen):
                row = replace(outcome.task.row, next_reconciliation_at=None)
                decisions += _writable(Decision(row, decide(row, outcome.answer, now, policy)))
            elif not isinstance(outcome.error, ProviderError):
                log.error("look_failed", box=str(outcome.task.row.pk), error=type(outcome.error).__name__)
        write_decisions(decisions, PassResult())
        for decision in decisions:
            notify.notify(notify.CHANGED, f"box:{decision.row.pk}")

    def seconds_until_due(self) -> float | None:
        with connection.cursor() as cursor:
            cursor.execute("select 1 from box_webhook_deliveries where looked_at is null limit 1")
            return 0.0 if cursor.fetchone() else None


_TAKE = """
    with due as materialized (
        select delivery_id from box_webhook_deliveries where looked_at is null
        order by received_at limit %s for update skip locked)
    update box_webhook_deliveries delivery set looked_at = clock_timestamp()
    from due where delivery.delivery_id = due.delivery_id returning delivery.box_id
"""


def _writable(decision: Decision) -> list[Decision]:
    """What of the decision can be written without a further call. Writing a missing box off is a pass's to decide."""
    action = decision.action
    if isinstance(action, Stop):
        return [Decision(decision.row, action.note)]
    if isinstance(action, Note):
        return [decision]
    if isinstance(action, End) and action.reason != StopReason.PROVIDER_MISSING:
        return [decision]
    return []
