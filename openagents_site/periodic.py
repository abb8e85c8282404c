"""The passes of the installation, each with its slot."""

from __future__ import annotations

from typing import Any

from boxes import slots
from boxes.conf import box_api
from openagents_site.worker import PeriodicWork

RECONCILE = "reconcile"


def periodic_work() -> list[PeriodicWork]:
    """Every pass that a worker runs when its slot is due."""
    return [PeriodicWork(RECONCILE, ensure_reconcile_slot, run_reconcile)]


def ensure_reconcile_slot() -> None:
    slots.ensure(RECONCILE, interval_ms=box_api().reconciliation_interval_ms)


def run_reconcile() -> dict[str, Any]:
    """One reconcile pass; what it counted. Raises BoxError if the provider's list could not be had."""
    from boxes.reconciler import reconcile

    return reconcile().as_dict()
