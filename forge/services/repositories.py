"""Making repositories, and changing what the forge knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog
from django.db import IntegrityError, transaction

from accounts.models import User
from base.clock import database_now
from base.transitions import move
from forge import git, limits, names
from forge.errors import FieldsInvalid, RepositoryNotMade, RepositoryTaken
from forge.git.storage import new_key
from forge.models import Membership, Repository
from forge.states import Lifecycle, Role, Visibility

log = structlog.get_logger(__name__)

INVALID_NAME = "1 to 64 lower-case letters, digits, _, - and ., first a letter or digit, without .. and without . or .git at the end"


def create_repository(
    owner: User,
    name: str,
    *,
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    default_branch: str = "main",
    protected_branches: Sequence[str] = (),
) -> Repository:
    """Make an empty repository in the owner's namespace; returns it ready. The owner is its first member.

    A repository whose making was interrupted is made again under its name. Raises FieldsInvalid, RepositoryTaken and
    RepositoryNotMade; then it is not served.
    """
    values = {
        "description": description,
        "visibility": visibility,
        "default_branch": default_branch,
        "protected_branches": list(protected_branches),
    }
    check(values)
    if not names.is_repository_name(name):
        raise FieldsInvalid({"name": INVALID_NAME}, "invalid_repository_name")
    repository = _reserve(owner, name, values)
    _provision(repository)
    repository.refresh_from_db()
    return repository


def update_repository(repository: Repository, **changes: Any) -> Repository:
    """Change description, visibility, default_branch or protected_branches; returns the repository. Raises FieldsInvalid."""
    check(changes)
    if not changes:
        return repository
    Repository.objects.filter(pk=repository.pk).update(**changes)
    repository.refresh_from_db()
    if "default_branch" in changes:
        git.set_default_branch(repository.storage_key, repository.default_branch)
    return repository


def check(values: dict[str, Any]) -> None:
    """Raises FieldsInvalid with what is wrong, by field."""
    wrong: dict[str, str] = {}
    description = values.get("description", "")
    if (
        not isinstance(description, str)
        or len(description) > limits.DESCRIPTION_CHARACTERS
        or "\0" in description
    ):
        wrong["description"] = f"at most {limits.DESCRIPTION_CHARACTERS} characters"
    if values.get("visibility", "private") not in Visibility.values:
        wrong["visibility"] = "public or private"
    if not names.is_branch_name(values.get("default_branch", "main")):
        wrong["default_branch"] = "must be a name for a branch"
    protected = values.get("protected_branches", [])
    if len(protected) > limits.PROTECTED_BRANCHES or not all(map(names.is_branch_name, protected)):
        wrong["protected_branches"] = f"at most {limits.PROTECTED_BRANCHES} names of branches"
    unknown = set(values) - {"description", "visibility", "default_branch", "protected_branches"}
    wrong |= dict.fromkeys(sorted(unknown), "there is no such field")
    if wrong:
        raise FieldsInvalid(wrong)


def _reserve(owner: User, name: str, values: dict[str, Any]) -> Repository:
    """The row, committed before anything is on disk; one that never became ready is taken up again."""
    try:
        with transaction.atomic():
            repository = Repository.objects.create(owner=owner, name=name, storage_key=new_key(), **values)
            Membership.objects.create(repository=repository, user=owner, role=Role.OWNER)
            return repository
    except IntegrityError:
        known = Repository.objects.get(owner=owner, name=name)
        if known.is_ready:
            raise RepositoryTaken from None
        Repository.objects.filter(pk=known.pk).update(**values)
        known.refresh_from_db()
        return known


def _provision(repository: Repository) -> None:
    rows = Repository.objects.filter(pk=repository.pk).exclude(lifecycle_state=Lifecycle.READY)
    try:
        git.make(repository.storage_key, repository.default_branch)
    except (OSError, git.GitFailed) as error:
        log.exception("repository_not_made", repository=str(repository.pk))
        rows.update(lifecycle_state=Lifecycle.FAILED)
        raise RepositoryNotMade from error
    move(rows, where={}, to={"lifecycle_state": Lifecycle.READY, "ready_at": database_now()})
