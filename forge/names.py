"""What names may look like: of repositories, branches and labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from forge.limits import BRANCH_BYTES, REPOSITORY_NAME_CHARACTERS

ALWAYS_PROTECTED = frozenset({"main", "master"})
PROTECTED_PREFIX = "protected/"
HEADS = "refs/heads/"

_REPOSITORY = re.compile(r"[a-z0-9][a-z0-9._-]*")
_NOT_IN_A_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\\s]|\.\.|@\{|//")


def is_repository_name(name: str) -> bool:
    """1 to 64 lower-case letters, digits, `_`, `-` and `.`, first a letter or digit; no double or last dot, no `.git`."""
    return (
        isinstance(name, str)
        and len(name) <= REPOSITORY_NAME_CHARACTERS
        and _REPOSITORY.fullmatch(name) is not None
        and ".." not in name
        and not name.endswith((".", ".git"))
    )


def is_branch_name(name: object) -> bool:
    """Whether Git takes it as the name of a branch, and no command line can take it for something else."""
    if not isinstance(name, str) or not name or _NOT_IN_A_BRANCH.search(name):
        return False
    if name.startswith(("-", ".", "/")) or name.endswith((".", "/", ".lock")) or name in {"@", "HEAD"}:
        return False
    parts = name.split("/")
    if any(part.startswith(".") or part.endswith(".lock") for part in parts):
        return False
    try:
        return len(name.encode()) <= BRANCH_BYTES
    except UnicodeEncodeError:
        return False


def is_protected(branch: str, default_branch: str, protected_branches: Collection[str]) -> bool:
    """Whether no attempt may write this branch."""
    return (
        branch == default_branch
        or branch in ALWAYS_PROTECTED
        or branch in protected_branches
        or branch.startswith(PROTECTED_PREFIX)
    )


def ref_of(branch: str) -> str:
    return HEADS + branch


def default_branch_of(issue_number: int) -> str:
    """The branch of an attempt for which the caller names none."""
    return f"agent/issue-{issue_number}"
