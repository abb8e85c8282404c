"""Errors of the forge app, and with which HTTP status the API answers each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from base.errors import CodedError


class ForgeError(CodedError):
    """The request about a repository could not be done."""

    code = "forge_request_failed"


class FieldsInvalid(ForgeError):
    """Something in the request is not valid."""

    code = "invalid_request"
    fields: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, fields: Mapping[str, str], code: str | None = None) -> None:
        super().__init__(code, "; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = {name: [text] for name, text in fields.items()}  # type: ignore[misc]  # its own


class RepositoryNotFound(ForgeError):
    """There is no such repository, or it is not ready."""

    code = "repository_not_found"


class RepositoryTaken(ForgeError):
    """There is a repository with this name already."""

    code = "repository_taken"


class RepositoryNotMade(ForgeError):
    """The repository could not be made on disk."""

    code = "repository_not_made"


class RepositoryNotWritable(ForgeError):
    """Only owners, maintainers and contributors may write to this repository."""

    code = "repository_not_writable"


class NotAKeeper(ForgeError):
    """Only owners and maintainers may change a repository, its members and its machines."""

    code = "repository_not_yours_to_change"


class LastOwner(ForgeError):
    """A repository keeps at least one owner."""

    code = "repository_needs_an_owner"


class MemberNotFound(ForgeError):
    """There is no such user, or no such member."""

    code = "member_not_found"


class IssueNotFound(ForgeError):
    """There is no such issue."""

    code = "issue_not_found"


class AssignmentError(ForgeError):
    """The attempt could not be made."""

    code = "assignment_failed"


class InvalidTarget(AssignmentError):
    """An attempt works on a box or on a computer."""

    code = "invalid_assignment_target"


class InvalidBranch(AssignmentError):
    """This is no name for a branch."""

    code = "invalid_assignment_branch"


class ProtectedBranch(AssignmentError):
    """No attempt may write a protected branch."""

    code = "protected_branch"


class InvalidPrincipal(AssignmentError):
    """An attempt is asked for by a user, for themselves."""

    code = "invalid_principal"


class InvalidDeadline(AssignmentError):
    """A deadline is a time in the future, with its time zone."""

    code = "invalid_deadline"


class IssueClaimed(AssignmentError):
    """Another attempt is at work on this issue."""

    code = "assignment_issue_claimed"


class BoxBusy(AssignmentError):
    """Another attempt is at work on this box."""

    code = "assignment_box_busy"


class MachineBusy(AssignmentError):
    """Another attempt is at work on this computer."""

    code = "assignment_machine_busy"


class AssignmentFinished(AssignmentError):
    """The attempt ended before it was started."""

    code = "assignment_finished"


class AssignmentNotFound(AssignmentError):
    """There is no such attempt."""

    code = "assignment_not_found"


class AssignmentNotLive(AssignmentError):
    """The attempt has ended."""

    code = "assignment_not_live"


class AssignmentNotDue(AssignmentError):
    """The attempt's deadline has not passed."""

    code = "assignment_not_due"


class BoxNotOwned(AssignmentError):
    """There is no such box in this conversation."""

    code = "box_not_owned"


class TargetRevoked(AssignmentError):
    """The computer was revoked."""

    code = "assignment_machine_revoked"


class InvalidCredential(AssignmentError):
    """The credential is not valid."""

    code = "invalid_assignment_credential"


STATUS_BY_CODE: Mapping[str, int] = {
    ForgeError.code: 500,
    FieldsInvalid.code: 422,
    "invalid_repository_name": 422,
    RepositoryNotFound.code: 404,
    RepositoryTaken.code: 409,
    RepositoryNotMade.code: 503,
    RepositoryNotWritable.code: 403,
    NotAKeeper.code: 403,
    LastOwner.code: 409,
    MemberNotFound.code: 404,
    IssueNotFound.code: 404,
    AssignmentError.code: 409,
    InvalidTarget.code: 422,
    InvalidBranch.code: 422,
    ProtectedBranch.code: 403,
    InvalidPrincipal.code: 422,
    InvalidDeadline.code: 422,
    IssueClaimed.code: 409,
    BoxBusy.code: 409,
    MachineBusy.code: 409,
    AssignmentFinished.code: 409,
    AssignmentNotFound.code: 404,
    AssignmentNotLive.code: 409,
    AssignmentNotDue.code: 409,
    BoxNotOwned.code: 404,
    TargetRevoked.code: 409,
    InvalidCredential.code: 401,
}

CREATION_ERRORS = (
    "invalid_command", "invalid_assignment_target", "invalid_assignment_branch", "protected_branch", "invalid_principal",
    "invalid_deadline", "repository_not_found", "repository_not_writable", "issue_not_found", "conversation_not_found",
    "assignment_issue_claimed", "assignment_box_busy", "assignment_machine_busy", "assignment_finished", "box_not_owned",
    "box_stopped", "machine_not_found", "machine_offline", "assignment_machine_revoked", "machine_expired",
    "agent_not_available", "cwd_not_allowed", "invalid_delegation_request", "computer_controller_disabled",
)  # fmt: skip
"""Why no attempt is made."""

PUBLIC_CODE: Mapping[str, str] = {TargetRevoked.code: "machine_revoked"}
"""The code that the API shows, where it is not the error's own."""
