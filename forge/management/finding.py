"""Repositories as an operator names them: OWNER/NAME."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management.base import CommandError

from accounts.models import User
from base.console import EXIT_NOT_FOUND
from forge.models import Repository
from forge.selectors import find_repository


def repository_called(text: str) -> Repository:
    """Raises CommandError with exit status 3."""
    owner, _, name = text.partition("/")
    found = find_repository(owner, name)
    if found is None:
        raise CommandError(f"there is no repository {text!r}", returncode=EXIT_NOT_FOUND)
    return found


def repositories_called(texts: Sequence[str]) -> list[Repository]:
    """These, or all that are ready."""
    if texts:
        return [repository_called(text) for text in texts]
    return list(
        Repository.objects.select_related("owner")
        .filter(lifecycle_state="ready")
        .order_by("owner__slug", "name")
    )


def user_called(slug: str) -> User:
    """Raises CommandError with exit status 3."""
    rows = User.objects.filter(slug__iexact=slug.replace("\0", ""), deleted_at=None)
    found: User | None = rows.first()
    if found is None:
        raise CommandError(f"there is no user {slug!r}", returncode=EXIT_NOT_FOUND)
    return found
