"""Reads that more than one caller needs, each with a known number of queries."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q, QuerySet

from accounts.models import User
from forge.errors import RepositoryNotFound
from forge.models import Assignment, Membership, Repository
from forge.states import KEEPERS, WRITERS, Role, Visibility
from runs.models import Run


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
    wanted = as_id(repository_id)
    rows = Repository.objects.select_related("owner").filter(lifecycle_state="ready")
    found = None if wanted is None else rows.filter(pk=wanted).first()
    if found is None:
        raise RepositoryNotFound
    return found


def attempts_of(runs: Iterable[Run]) -> dict[UUID, Assignment]:
    """Of these runs, those that were started for an attempt, with it and its issue. One query, none where none was."""
    wanted = {run.pk: pk for run in runs if (pk := attempt_named(run.requesting_principal))}
    rows = Assignment.objects.filter(pk__in=wanted.values()) if wanted else Assignment.objects.none()
    found = {attempt.pk: attempt for attempt in rows.select_related("repository", "issue")}
    return {run: found[pk] for run, pk in wanted.items() if pk in found}


def attempt_named(principal: object) -> UUID | None:
    """The id of the attempt that started what this principal asked for; None for every other principal."""
    if not isinstance(principal, dict) or principal.get("type") != "assignment":
        return None
    return as_id(principal.get("id"))


def as_id(named: object) -> UUID | None:
    """The id that this text is; None for any other."""
    try:
        return UUID(str(named))
    except ValueError:
        return None


def role_of(user: User, repository: Repository) -> Role | None:
    """The role of an active user. One query."""
    rows = Membership.objects.filter(repository=repository, user=user, user__is_active=True)
    role = rows.values_list("role", flat=True).first()
    return None if role is None else Role(role)


def may_still_write(user_id: object, repository_id: UUID) -> bool:
    """Whether the active user with this id, as a principal names it, may write to the repository. One query."""
    rows = Membership.objects.filter(repository=repository_id, user=as_id(user_id), user__is_active=True)
    return rows.filter(role__in=WRITERS).exists()


def may_write(user: User, repository: Repository) -> bool:
    return role_of(user, repository) in WRITERS


def may_change(user: User, repository: Repository) -> bool:
    return role_of(user, repository) in KEEPERS
