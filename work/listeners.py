"""What the work app does when another app speaks up."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from base import hooks


def register() -> None:
    """Register with the hooks; called once at start."""
    from work import incidents
    from work.delegations.driver import DelegationDriver
    from work.services.cancelling import cancel_of_machine, cancel_of_owner

    hooks.incident_reporter.register(incidents.report)
    hooks.owner_deleted.register(cancel_of_owner)
    hooks.owner_deleted.register(revoke_machines_of)
    hooks.machine_revoked.register(cancel_of_machine)
    hooks.drivers.register(DelegationDriver)


def revoke_machines_of(owner: Any) -> int:
    """A deleted user's machines are revoked; returns how many."""
    from work.machines import revoke_machine
    from work.models import Machine

    if not isinstance(owner, User):
        return 0
    return sum(revoke_machine(machine) for machine in Machine.objects.filter(user=owner, status="active"))
