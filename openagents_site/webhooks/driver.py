"""The worker's driver of deliveries. See `base.pump.Driver`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from base import faults
from base.pump import Holder, Outcome
from base.sealing import SealBroken
from openagents_site.webhooks import deliveries, posting, signing
from openagents_site.webhooks.deliveries import Task
from openagents_site.webhooks.rules import Answer
from openagents_site.webhooks.subscriptions import DELIVERIES_DRIVER

log = structlog.get_logger(__name__)
CLAIMED = faults.declare("webhooks.claimed", "a delivery was claimed, and is not sent yet")
ANSWERED = faults.declare("webhooks.answered", "a delivery was answered, and that is not recorded yet")
SLOTS = 16


class DeliveryDriver:
    """One POST a task. A worker that dies between answer and record leaves a delivery that is sent again, under the same id."""

    name = DELIVERIES_DRIVER
    slots = SLOTS

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        return deliveries.claim_due(holder, limit)

    def perform(self, task: Task) -> Answer:
        """Sign it with the time of this try, and send it."""
        faults.fault_point(CLAIMED)
        secrets = [task.sealed_secret, *([task.sealed_previous] if task.sealed_previous else [])]
        try:
            opened = [signing.opened(task.webhook, kept) for kept in secrets]
        except SealBroken:
            return Answer(error="secret_unreadable")
        signed = signing.headers(f"evt_{task.event.hex}", datetime.now(UTC), task.body, opened)
        answer = posting.post(task.url, task.body, signed)
        faults.fault_point(ANSWERED)
        return answer

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """Each by itself: what follows for a webhook depends on what was written before."""
        for outcome in outcomes:
            if outcome.error is not None:
                log.error("webhook_try_broke", delivery=str(outcome.task.id), exc_info=outcome.error)
            answer = outcome.answer if outcome.error is None else Answer(error="internal_error")
            deliveries.settle(outcome.task, answer, chance=posting.chance())

    def seconds_until_due(self) -> float | None:
        return deliveries.seconds_until_due()
