"""Reads that more than one caller needs, each with a known number of queries."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from accounts.models import User
from forge.errors import RepositoryNotFound
from forge.models import Membership, Repository
from forge.states import KEEPERS, WRITERS, Role, Visibility


def visible_repositories(user: User) -> QuerySet[Repository]:
    """The repositories that the user is a member of, and all public ones that are ready. One query."""
    mine = Q(pk__in=Membership.objects.filter(user=user).values("repository"))
    return Repository.objects.select_related("owner").filter(
        mine | Q(visibility=Visibility.PUBLIC, lifecycle_state="ready")
    )


def find_repository(owner: str, name: str) -> Repository | None:
    """The ready repository at this address; case does not count. One query."""
    if "\0" in owner + name:
        return None
    rows = Repository.objects.select_related("owner").filter(lifecycle_state="ready")
    return rows.filter(owner__slug__iexact=owner, name=name.lower()).first()


def ready_repository(repository_id: UUID | str) -> Repository:
    """Raises RepositoryNotFound for one that is not there or not ready. One query."""
    try:
        wanted = UUID(str(repository_id))
    except ValueError:
        raise RepositoryNotFound from None
    rows = Repository.objects.select_related("owner")
    found = rows.filter(pk=wanted, lifecycle_state="ready").first()
    if found is None:
        raise RepositoryNotFound
    return found


def role_of(user: User, repository: Repository) -> Role | None:
    """The role of an active user. One query."""
    rows = Membership.objects.filter(repository=repository, user=user, user__is_active=True)
    role = rows.values_list("role", flat=True).first()
    return None if role is None else Role(role)


def may_still_write(user_id: object, repository_id: UUID) -> bool:
    """Whether the active user with this id, as a principal names it, may write to the repository. One query."""
    try:
        wanted = UUID(str(user_id))
    except ValueError:
        return False
    rows = Membership.objects.filter(repository=repository_id, user=wanted, user__is_active=True)
    return rows.filter(role__in=WRITERS).exists()


def may_write(user: User, repository: Repository) -> bool:
    return role_of(user, repository) in WRITERS


def may_change(user: User, repository: Repository) -> bool:
    return role_of(user, repository) in KEEPERS
