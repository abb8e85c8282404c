"""What the forge does when another app speaks up."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from base import hooks
from base.pump import Driver
from forge import selectors
from runs.models import Run


def register() -> None:
    """Register with the hooks; called once at start."""
    from forge.assignments import cancelling, delivery, ends

    hooks.drivers.register(assignment_driver)
    hooks.run_credential.register(delivery.run_credential)
    hooks.wanted_commands.register(wanted_commands)
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


def wanted_commands(runs: Sequence[Run]) -> dict[UUID, str]:
    """What each attempt among the runs is to run in its clone."""
    found = selectors.attempts_of(runs)
    return {run: attempt.command for run, attempt in found.items() if attempt.command is not None}
