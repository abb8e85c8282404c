"""Who speaks on the channel: a machine, by its token and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.models import User
from work.errors import MachineNotFound
from work.machines.errors import MachinesDisabled
from work.machines.tokens import authenticate_token
from work.machines_conf import machine_settings
from work.models import Machine

if TYPE_CHECKING:
    from rest_framework.views import APIView


class MachineTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer smct_...`. Raises MachineNotFound, MachineRevoked and MachineExpired."""

    def authenticate(self, request: Request) -> tuple[User, Machine]:
        machine = authenticate_token(presented_token(request))
        return machine.user, machine

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class IsMachine(BasePermission):
    """The caller is a machine, and machines are wanted at all."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not machine_settings().enabled:
            raise MachinesDisabled
        return isinstance(request.auth, Machine)


def presented_token(request: Request) -> str:
    """What the request shows as a token. Raises MachineNotFound if it shows none."""
    parts = get_authorization_header(request).split()
    if len(parts) != 2 or parts[0].lower() != b"bearer":
        raise MachineNotFound
    return parts[1].decode("latin-1")


def machine_of(request: Request) -> Machine:
    """The machine that calls."""
    assert isinstance(request.auth, Machine), "the view lets others than machines in"
    return request.auth
