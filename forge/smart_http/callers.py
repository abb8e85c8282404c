"""Who speaks Git to us: HTTP Basic, the password is the credential, and its prefix says of what kind."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from accounts.authentication import BearerTokenAuthentication, InvalidApiToken
from accounts.models import User
from accounts.scopes import Scope
from accounts.services import scopes_of
from base.errors import CodedError
from forge import credentials
from forge.credentials import AssignmentPrincipal
from forge.models import MachineGrant, Repository
from forge.selectors import role_of
from forge.smart_http.access import Caller, Kind
from forge.states import WRITERS, Operation
from work.machines.tokens import authenticate_token
from work.models import Machine

LONGEST_HEADER = 4096
USER_PREFIX = "oa_pat_"
MACHINE_PREFIX = "smct_"


class WrongCredential(Exception):
    """There is a credential and it is no good: refused everywhere, also where nobody needs one."""


@dataclass(frozen=True, slots=True)
class Presented:
    """What a request showed. It is looked at afresh whenever it matters."""

    secret: str | None

    def __repr__(self) -> str:
        return "Presented(...)"


def presented(header: str) -> Presented:
    """The password of a Basic header; nothing without a header. Raises WrongCredential for any other header."""
    if not header:
        return Presented(None)
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic" or len(header) > LONGEST_HEADER:
        raise WrongCredential
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        raise WrongCredential from None
    _, colon, secret = text.partition(":")
    if not colon or "\0" in secret:
        raise WrongCredential
    return Presented(secret)


def caller(shown: Presented, repository: Repository | None) -> Caller:
    """Who this is and what they have to do with the repository, by the rows as they are now. Raises WrongCredential."""
    if shown.secret is None:
        return Caller(Kind.ANONYMOUS)
    try:
        if shown.secret.startswith(credentials.PREFIX):
            return _assignment(credentials.authenticate(shown.secret), repository)
        if shown.secret.startswith(MACHINE_PREFIX):
            return _machine(authenticate_token(shown.secret), repository)
        if shown.secret.startswith(USER_PREFIX):
            return _user(shown.secret, repository)
    except (CodedError, InvalidApiToken) as error:
        raise WrongCredential from error
    raise WrongCredential


def _assignment(principal: AssignmentPrincipal, repository: Repository | None) -> Caller:
    is_its_own = repository is not None and repository.pk == principal.repository_id
    return Caller(
        Kind.ASSIGNMENT,
        name=f"assignment:{principal.assignment_id}",
        assignment_id=principal.assignment_id,
        branch=principal.branch if is_its_own else None,
    )


def _machine(machine: Machine, repository: Repository | None) -> Caller:
    grants = MachineGrant.objects.filter(machine=machine, repository=repository)
    granted = frozenset(map(Operation, grants.values_list("operations", flat=True).first() or []))
    return Caller(
        Kind.MACHINE,
        name=f"machine:{machine.pk}",
        operations=granted & _of_owner(machine.user, repository) if granted else granted,
    )


def _of_owner(owner: User, repository: Repository | None) -> frozenset[Operation]:
    """What a computer can have at most: what its owner may do."""
    role = role_of(owner, repository) if repository is not None else None
    if role in WRITERS:
        return frozenset(Operation)
    return frozenset() if role is None else frozenset({Operation.READ})


def _user(secret: str, repository: Repository | None) -> Caller:
    token = BearerTokenAuthentication().find(secret.encode())
    user: User = token.user
    scopes = scopes_of(token)
    return Caller(
        Kind.USER,
        name=f"user:{user.pk}",
        user_id=user.pk,
        role=role_of(user, repository) if repository is not None else None,
        may_read=bool(scopes & {Scope.READ, Scope.FORGE_WRITE}),
        may_write=Scope.FORGE_WRITE in scopes,
    )
