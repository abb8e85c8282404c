"""What the work app does when another app speaks up."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from base import hooks
from base.pump import Driver


def register() -> None:
    """Register with the hooks; called once at start."""
    from work import incidents
    from work.delegations.driver import DelegationDriver
    from work.services.cancelling import cancel_of_machine, cancel_of_owner
    from work.tools.job_boxes import stop_boxes_of

    hooks.incident_reporter.register(incidents.report)
    hooks.owner_deleted.register(cancel_of_owner)
    hooks.owner_deleted.register(revoke_machines_of)
    hooks.machine_revoked.register(cancel_of_machine)
    hooks.job_finished.register(stop_boxes_of)
    hooks.tools.register(built_in_tools)
    hooks.drivers.register(job_driver)
    hooks.drivers.register(DelegationDriver)


def job_driver() -> Driver:
    """What the worker drives deep-work jobs with."""
    from work.deep_work.driver import JobDriver

    return JobDriver(recovers=True)


def built_in_tools() -> list[Any]:
    """What every job may call."""
    from work.tools.boxes import BOX_TOOLS
    from work.tools.recall import RECALL_MESSAGES

    return [RECALL_MESSAGES, *BOX_TOOLS]


def revoke_machines_of(owner: Any) -> int:
    """A deleted user's machines are revoked; returns how many."""
    from work.machines import revoke_machine
    from work.models import Machine

    if not isinstance(owner, User):
        return 0
    return sum(revoke_machine(machine) for machine in Machine.objects.filter(user=owner, status="active"))
