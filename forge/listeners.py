"""What the forge does when another app speaks up."""

from __future__ import annotations

from base import hooks
from base.pump import Driver


def register() -> None:
    """Register with the hooks; called once at start."""
    from forge.assignments import cancelling, delivery, ends

    hooks.drivers.register(assignment_driver)
    hooks.run_credential.register(delivery.run_credential)
    hooks.credential_seen.register(delivery.credential_seen)
    hooks.job_credential.register(delivery.job_credential)
    hooks.run_finished.register(ends.run_finished)
    hooks.job_finished.register(ends.job_finished)
    hooks.machine_revoked.register(cancelling.of_revoked_machine)
    hooks.machine_credentials_disabled.register(cancelling.of_machine_without_credentials)
    hooks.owner_deleted.register(cancelling.of_owner)


def assignment_driver() -> Driver:
    from forge.assignments.driver import AssignmentDriver

    return AssignmentDriver()
