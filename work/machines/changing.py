"""What an owner may change of a machine: its name, less authority, and whether it gets Git credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from base import hooks
from work import limits
from work.errors import MachineRevoked
from work.machines.descriptions import is_storable
from work.machines.errors import MachineInvalid
from work.models import Machine
from work.states import MachineStatus, MachineTier

_AUTHORITY = [MachineTier.PROBE, MachineTier.CURATED, MachineTier.SHELL]
_FIELDS = ("name", "tier", "scoped_forge_credentials_enabled")


def change_machine(machine: Machine, changes: Mapping[str, Any]) -> Machine:
    """Change `name`, `tier` (only to less: more is asked for by the machine itself, when it is paired anew) or
    `scoped_forge_credentials_enabled`; returns the machine. Delegations keep the authority they were given.

    Raises MachineInvalid with what is wrong by field, and MachineRevoked. A change is all or nothing.
    """
    with transaction.atomic():
        current = Machine.objects.select_for_update(no_key=True).get(pk=machine.pk)
        _check(current, changes)
        if current.status != MachineStatus.ACTIVE:
            raise MachineRevoked
        for name, value in changes.items():
            setattr(current, name, value.strip() if name == "name" else value)
        current.save(update_fields=list(changes))
        if changes.get("scoped_forge_credentials_enabled") is False:
            hooks.machine_credentials_disabled(current)
    machine.refresh_from_db()
    return machine


def _check(machine: Machine, changes: Mapping[str, Any]) -> None:
    wrong = {str(name): ["there is no such field"] for name in changes if name not in _FIELDS}
    name = changes.get("name", machine.name)
    if (
        not isinstance(name, str)
        or not is_storable(name)
        or not 1 <= len(name.strip()) <= limits.MACHINE_NAME_CHARACTERS
    ):
        wrong["name"] = [f"must be text of 1 to {limits.MACHINE_NAME_CHARACTERS} characters"]
    tier = changes.get("tier", machine.tier)
    if tier not in MachineTier.values or _AUTHORITY.index(tier) > _AUTHORITY.index(MachineTier(machine.tier)):
        wrong["tier"] = ["must be a tier with no more authority; pair the machine anew to give it more"]
    if not isinstance(changes.get("scoped_forge_credentials_enabled", False), bool):
        wrong["scoped_forge_credentials_enabled"] = ["must be true or false"]
    if wrong:
        raise MachineInvalid(wrong)
