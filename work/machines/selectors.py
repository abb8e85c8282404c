"""Readings of machines that more than one caller needs."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from accounts.models import User
from work.errors import MachineNotFound
from work.models import Machine


def machines_of(user: User) -> QuerySet[Machine]:
    """The user's machines with their channels, revoked ones too; newest first. One query to list."""
    return Machine.objects.select_related("channel").filter(user=user)


def find_machine(machines: QuerySet[Machine], machine_id: UUID) -> Machine:
    """Raises MachineNotFound for one that is not among `machines`, another owner's as well as none."""
    machine = machines.filter(pk=machine_id).first()
    if machine is None:
        raise MachineNotFound
    return machine
