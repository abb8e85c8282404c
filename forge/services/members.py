"""Who may use a repository: users by role, computers by grant."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from accounts.models import User
from forge.assignments.cancelling import end_all
from forge.errors import FieldsInvalid, LastOwner, MemberNotFound, NotAKeeper
from forge.models import MachineGrant, Membership, Repository
from forge.states import WRITERS, AssignmentState, Operation, Role
from work.models import Machine

NOT_WRITABLE = "repository_not_writable"


def set_member(repository: Repository, user: User, role: str, *, by: User | None = None) -> Membership:
    """Give the user this role; where it may not write, the user's attempts have failed. Raises FieldsInvalid, MemberNotFound
    for a deleted user, LastOwner if no owner would be left, and NotAKeeper if `by`, who is not an owner, would make an
    owner or change one."""
    if role not in Role.values:
        raise FieldsInvalid({"role": f"one of {', '.join(Role.values)}"})
    if user.deleted_at is not None:
        raise MemberNotFound
    with transaction.atomic():
        _lock(repository)
        _check_rank(repository, by, user, role)
        if role != Role.OWNER:
            _keep_an_owner(repository, user)
        member, _ = Membership.objects.update_or_create(
            repository=repository, user=user, defaults={"role": role}
        )
    if role not in WRITERS:
        _end_attempts(repository, user)
    return member


def remove_member(repository: Repository, user: User, *, by: User | None = None) -> None:
    """Take the user's role away, with the grants of the user's computers; the user's attempts have failed. Raises
    MemberNotFound, LastOwner if no owner would be left, and NotAKeeper as above."""
    with transaction.atomic():
        _lock(repository)
        _check_rank(repository, by, user, None)
        _keep_an_owner(repository, user)
        if not Membership.objects.filter(repository=repository, user=user).delete()[0]:
            raise MemberNotFound
        MachineGrant.objects.filter(repository=repository, machine__user=user).delete()
    _end_attempts(repository, user)


def grant_machine(repository: Repository, machine: Machine, operations: Iterable[str]) -> MachineGrant:
    """Let the computer fetch (`read`) or push (`write`) by its own token; the grant it had is replaced. Raises FieldsInvalid."""
    wanted = sorted(set(operations))
    if not wanted or not set(wanted) <= set(Operation.values):
        raise FieldsInvalid({"operations": "read, write, or both"})
    grant, _ = MachineGrant.objects.update_or_create(
        repository=repository, machine=machine, defaults={"operations": wanted}
    )
    return grant


def revoke_machine_grant(repository: Repository, machine: Machine) -> bool:
    """Take the computer's grant away; returns whether it had one."""
    return bool(MachineGrant.objects.filter(repository=repository, machine=machine).delete()[0])


def _end_attempts(repository: Repository, user: User) -> None:
    """Their credentials are refused already, since the user may not write any more; what they started need not go on."""
    asked = {"repository": repository, "requesting_principal__id": str(user.pk)}
    end_all(AssignmentState.FAILED, NOT_WRITABLE, **asked)


def _lock(repository: Repository) -> None:
    # Changes of members wait for each other: two owners who remove one another leave one.
    Repository.objects.select_for_update(no_key=True, of=("self",)).get(pk=repository.pk)


def _check_rank(repository: Repository, by: User | None, user: User, role: str | None) -> None:
    """Only an owner makes owners, and changes what they are."""
    roles = dict(
        Membership.objects.filter(repository=repository, user__in=[user, by or user]).values_list(
            "user", "role"
        )
    )
    touches_an_owner = role == Role.OWNER or roles.get(user.pk) == Role.OWNER
    if by is not None and touches_an_owner and roles.get(by.pk) != Role.OWNER:
        raise NotAKeeper


def _keep_an_owner(repository: Repository, leaving: User) -> None:
    owners = Membership.objects.filter(repository=repository, role=Role.OWNER)
    ids = set(owners.values_list("user_id", flat=True))
    if ids == {leaving.pk}:
        raise LastOwner
