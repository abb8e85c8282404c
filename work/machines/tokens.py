"""Knowing a machine by its token."""

from __future__ import annotations

from accounts.models import User
from base.clock import database_now
from work import limits
from work.errors import MachineExpired, MachineNotFound, MachineRevoked
from work.machines import secrets
from work.models import Machine
from work.states import MachineStatus


def authenticate_token(token: str) -> Machine:
    """The machine that this token belongs to, with its user. Raises MachineNotFound, MachineRevoked or MachineExpired.
    Two queries at most; none for what cannot be a token."""
    if not isinstance(token, str) or not token.startswith(secrets.TOKEN_PREFIX):
        raise MachineNotFound
    if len(token.encode("utf-8", "replace")) >= limits.TOKEN_BYTES_ON_THE_WIRE:
        raise MachineNotFound
    machine = Machine.objects.select_related("user").filter(token_digest=secrets.secret_digest(token)).first()
    if machine is None:
        raise MachineNotFound
    if machine.status != MachineStatus.ACTIVE or not _may_act(machine.user):
        raise MachineRevoked
    if machine.token_expires_at <= database_now():
        raise MachineExpired
    return machine


def _may_act(owner: User) -> bool:
    """A computer acts for its owner: who may not sign in acts by no computer either."""
    return owner.is_active and owner.deleted_at is None
