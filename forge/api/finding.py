"""What the caller of a request may see. Another's object is not there."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from accounts.caller import user_of
from accounts.models import User
from base.api.parameters import all_owners
from forge.errors import IssueNotFound, MemberNotFound, NotAKeeper, RepositoryNotFound, RepositoryNotWritable
from forge.models import Issue, Repository
from forge.selectors import may_change, may_write, visible_repositories

LARGEST_NUMBER = 2**31 - 1


def repositories_of(request: Request) -> QuerySet[Repository]:
    """The repositories that the caller may see."""
    if all_owners(request):
        return Repository.objects.select_related("owner")
    return visible_repositories(user_of(request))


def find_repository(request: Request, repository_id: UUID) -> Repository:
    """Raises RepositoryNotFound."""
    found = repositories_of(request).filter(pk=repository_id).first()
    if found is None:
        raise RepositoryNotFound
    return found


def writable_repository(request: Request, repository_id: UUID) -> Repository:
    """Raises RepositoryNotFound, and RepositoryNotWritable for one that the caller may only read."""
    found = find_repository(request, repository_id)
    if not may_write(user_of(request), found):
        raise RepositoryNotWritable
    return found


def own_repository(request: Request, repository_id: UUID) -> Repository:
    """Raises RepositoryNotFound, and NotAKeeper for one that is not the caller's to change. Staff may look at everybody's."""
    found = find_repository(request, repository_id)
    looks = request.method in SAFE_METHODS and all_owners(request)
    if not looks and not may_change(user_of(request), found):
        raise NotAKeeper
    return found


def find_issue(repository: Repository, number: int) -> Issue:
    """Raises IssueNotFound."""
    rows = Issue.objects.select_related("author", "repository__owner").filter(repository=repository)
    found = rows.filter(number=number).first() if number <= LARGEST_NUMBER else None
    if found is None:
        raise IssueNotFound
    return found


def find_user(slug: str) -> User:
    """A user by slug. Raises MemberNotFound."""
    if "\0" in slug:
        raise MemberNotFound
    found: User | None = User.objects.filter(slug__iexact=slug, deleted_at=None).first()
    if found is None:
        raise MemberNotFound
    return found
