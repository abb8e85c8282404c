"""Entry points of the scheduler. They take nothing, return nothing, and claim what they do in the database."""

from __future__ import annotations

import structlog

from accounts import idempotency, rates
from base import pump
from base.pump import Holder
from boxes import heartbeats, slots
from openagents_site import retention
from openagents_site.periodic import RECONCILE, ensure_reconcile_slot, run_reconcile
from openagents_site.registry import drivers
from runs.services import recover

log = structlog.get_logger(__name__)
SCHEDULER = "scheduler"  # the heartbeat's name; the supervisor watches its age


def heartbeat() -> None:
    """Show that tasks are really run: a wedged cluster looks healthy from outside."""
    heartbeats.stamp(SCHEDULER)


def reconcile_if_due() -> None:
    """The reconcile pass, if no worker has run it when it was due."""
    ensure_reconcile_slot()
    slots.run_if_due(RECONCILE, Holder(), run_reconcile)


def drive_due() -> None:
    """Everything that is due now and takes seconds, once: without a worker the installation is slower, not still.

    Jobs of minutes are left to workers: they would block the other tasks.
    """
    recover()
    pump.run_once(pump.quick(drivers()))


def forget_old_rows() -> None:
    """Rows that nobody will ask for again: answers to repeated requests, and windows of rate limits."""
    idempotency.forget_old()
    rates.forget_old()


def prune() -> None:
    """What is kept for a time only. Every day."""
    for forgotten in retention.prune():
        if forgotten.rows:
            log.info("pruned", what=forgotten.what, rows=forgotten.rows, days=forgotten.days)
