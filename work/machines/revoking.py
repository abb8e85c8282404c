"""Revoking a machine: its token is worth nothing from now on, and what it was asked to do is cancelled."""

from __future__ import annotations

import structlog

from base import hooks
from base.clock import database_now
from base.transitions import move
from work.channel.waking import wake_machine
from work.models import Machine, MachineFrame
from work.states import MachineStatus

log = structlog.get_logger(__name__)


def revoke_machine(machine: Machine) -> bool:
    """End the machine's right to act; its delegations are cancelled (by hook). Returns False if it was revoked before."""
    revoked = move(
        Machine.objects.filter(pk=machine.pk),
        where={"status": MachineStatus.ACTIVE},
        to={"status": MachineStatus.REVOKED, "revoked_at": database_now()},
    )
    machine.refresh_from_db(fields=["status", "revoked_at"])
    # Also where it was revoked before: a process that died in between has told nobody, and to cancel twice is nothing.
    hooks.machine_revoked(machine)
    MachineFrame.objects.filter(machine=machine).delete()
    wake_machine(machine.pk)
    if revoked:
        log.info("machine_revoked", machine=str(machine.pk))
    return revoked
