"""The worker's driver of rows that are being created, and of stops that nobody else carries out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connection

from base import leases
from base.pump import Holder, Outcome
from boxes import installation
from boxes.client import Gate, client
from boxes.conf import box_api
from boxes.installation import provider_ownership_marker
from boxes.models import Box
from boxes.provisioning import ledger, settling
from boxes.provisioning.calls import Task, perform
from boxes.provisioning.steps import Step, next_step
from boxes.stopping import DRIVER

log = structlog.get_logger(__name__)
SLOTS = 16


class ProvisioningDriver:
    """One provider call a task: create, name, stop, or look. See `base.pump.Driver`.

    What it finds due: reservations that nobody is asking for, answers that were lost, boxes without our name, new boxes that
    are not ready yet, stops that were asked for, and stop claims whose holder died.
    """

    name = DRIVER
    slots = SLOTS

    def __init__(self) -> None:
        self._gate = Gate()

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        """Due rows as tasks. What needs no call, an abandoned creation or a row at rest, is written here."""
        wanted = [
            (box, step) for box in ledger.lease_due(holder, limit) if (step := self._decide(box)) is not None
        ]
        creates = [box for box, step in wanted if step == Step.CREATE]
        if creates:
            self._gate.close("start", installation.creates_held_seconds())  # what another process was told
        ours = ledger.note_attempts(creates)
        marker = provider_ownership_marker() if wanted else ""
        return [
            task_of(box, step, marker, attempts_before=box.create_attempts)
            for box, step in wanted
            if step != Step.CREATE or box.pk in ours
        ]

    def perform(self, task: Task) -> Any:
        """The task's call. Raises ProviderError."""
        return perform(client(gate=self._gate), task)

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """Write each outcome by itself: a row's few steps are seconds apart, and one bad row costs only itself."""
        for outcome in outcomes:
            if outcome.error is None:
                settling.settle_answer(outcome.task, outcome.answer)
            else:
                settling.settle_error(outcome.task, outcome.error)

    def seconds_until_due(self) -> float | None:
        """Until the next row that nobody holds is due; None without one."""
        with connection.cursor() as cursor:
            cursor.execute(_NEXT_DUE)
            row = cursor.fetchone()
        return float(row[0]) if row else None

    def _decide(self, box: Box) -> Step | None:
        """The call that the row needs. A row that cannot be written keeps its lease and is taken up after it."""
        now: datetime = box.leased_at  # type: ignore[attr-defined]  # comes with the lease
        decided = next_step(box, now, poll_attempts=box_api().poll_attempts)
        try:
            if decided.step == Step.ABANDON:
                ledger.abandon(box)
            elif decided.step == Step.REST:
                ledger.rest(box, decided.due_at)
            else:
                return decided.step
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("provisioning_row_failed", box=str(box.pk), step=str(decided.step))
        return None


_NEXT_DUE = f"""
    select extract(epoch from box.next_provision_at - clock_timestamp()) from conversation_boxes box
    where box.next_provision_at is not null and box.stopped_at is null and {leases.free("box")}
    order by box.next_provision_at limit 1
"""  # noqa: S608 - the fragment is a constant of ours


def task_of(box: Box, step: Step, marker: str, *, attempts_before: int) -> Task:
    """The step as a task that needs nothing else. `attempts_before`: how often the provider was asked for the box before."""
    body = box.create_body or {}
    return Task(
        pk=box.pk,
        generation=box.generation,
        step=step,
        box_id=box.box_id,
        create_key=box.create_key,
        create_body=body,
        marker=marker,
        stop_reason=ledger.stop_reason(box),
        failures=box.provision_failures,
        had_unknown=box.create_unknown or attempts_before > 0,
        setup_script=bool(body.get("setup_script")),
    )
