"""What a caller may do with a repository, and which refs one push may move. Tables without I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol
from uuid import UUID

from forge.names import HEADS, is_protected, ref_of
from forge.smart_http.ref_list import RefUpdate
from forge.states import WRITERS, Operation, Role, Visibility

PUSHABLE = (HEADS, "refs/tags/", "refs/notes/")


class Kind(Enum):
    ANONYMOUS = "anonymous"
    USER = "user"
    MACHINE = "machine"
    ASSIGNMENT = "assignment"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and what they have to do with the repository. `name` is how receipts call them."""

    kind: Kind
    name: str = "anonymous"
    user_id: Any = None
    role: Role | None = None
    may_read: bool = False
    may_write: bool = False
    operations: frozenset[Operation] = frozenset()
    assignment_id: UUID | None = None
    branch: str | None = None


class Subject(Protocol):
    """What of a repository decides."""

    visibility: str
    default_branch: str
    protected_branches: list[str]


class Answer(Enum):
    """The HTTP status of each answer is its value."""

    YES = 200
    WHO_ARE_YOU = 401
    NO = 403
    THERE_IS_NONE = 404


def decide(caller: Caller, repository: Subject | None, operation: Operation) -> Answer:
    """Whether the caller may fetch from or push to the repository; None is a repository that is not there."""
    if caller.kind is Kind.ANONYMOUS:
        is_open = repository is not None and repository.visibility == Visibility.PUBLIC
        return Answer.YES if is_open and operation == Operation.READ else Answer.WHO_ARE_YOU
    if repository is None:
        return Answer.THERE_IS_NONE
    if caller.kind is Kind.ASSIGNMENT:
        return Answer.YES if caller.branch is not None else Answer.THERE_IS_NONE
    if caller.kind is Kind.MACHINE:
        return _of_machine(caller, operation)
    return _of_user(caller, repository, operation)


def refusals(caller: Caller, repository: Subject, updates: Iterable[RefUpdate]) -> list[str]:
    """Why these updates may not be made, one sentence for each that may not; empty if all may."""
    judge = _of_attempt if caller.kind is Kind.ASSIGNMENT else _of_writer
    return [reason for update in updates if (reason := judge(caller, repository, update))]


def _of_machine(caller: Caller, operation: Operation) -> Answer:
    if operation in caller.operations:
        return Answer.YES
    return Answer.NO if caller.operations else Answer.THERE_IS_NONE


def _of_user(caller: Caller, repository: Subject, operation: Operation) -> Answer:
    if operation == Operation.READ:
        if caller.role is None and repository.visibility != Visibility.PUBLIC:
            return Answer.THERE_IS_NONE
        return Answer.YES if caller.may_read else Answer.NO
    if caller.role is None:
        return Answer.THERE_IS_NONE
    return Answer.YES if caller.role in WRITERS and caller.may_write else Answer.NO


def _of_attempt(caller: Caller, repository: Subject, update: RefUpdate) -> str | None:
    """The one branch of the attempt, forward."""
    branch = caller.branch or ""
    if update.ref != ref_of(branch):
        return f"this credential may push {ref_of(branch)} and nothing else, not {update.ref}"
    if is_protected(branch, repository.default_branch, repository.protected_branches):
        return f"{update.ref} is protected"
    if update.is_delete:
        return f"{update.ref} may not be deleted with this credential"
    if update.is_rewrite:
        return f"{update.ref} may not be rewritten with this credential: it would lose commits"
    return None


def _of_writer(caller: Caller, repository: Subject, update: RefUpdate) -> str | None:
    """Branches, tags and notes. Nobody deletes or rewrites a branch that was protected by name."""
    if not update.ref.startswith(PUSHABLE):
        return f"only branches, tags and notes may be pushed, not {update.ref}"
    if not _is_listed(update.ref, repository.protected_branches):
        return None
    if update.is_delete:
        return f"{update.ref} is protected and may not be deleted"
    if update.is_rewrite:
        return f"{update.ref} is protected and may not be rewritten"
    return None


def _is_listed(ref: str, protected_branches: Collection[str]) -> bool:
    return ref.startswith(HEADS) and ref.removeprefix(HEADS) in protected_branches
