"""Errors of the runs app, and with which HTTP status the API answers each."""

from __future__ import annotations

from collections.abc import Mapping

from base.errors import CodedError


class RunError(CodedError):
    """The request about a run could not be done."""

    code = "box_run_failed"


class RunNotFound(RunError):
    """There is no such run."""

    code = "box_run_not_found"


class RunInProgress(RunError):
    """The box is at work on another run, or its processes are not known to be gone yet."""

    code = "box_run_in_progress"


class IdempotencyConflict(RunError):
    """This idempotency key was used for another command or another box."""

    code = "box_run_idempotency_conflict"


class InvalidCommand(RunError):
    """A command is 1 to 8,000 bytes of valid UTF-8 text, not blank, without NUL."""

    code = "invalid_command"


class InvalidIdempotencyKey(RunError):
    """An idempotency key of 1 to 256 bytes is required: the header `Idempotency-Key`, or `idempotency_key` in the body."""

    code = "invalid_idempotency_key"


class InvalidOutputOffset(RunError):
    """An output offset is a whole number, 0 or more."""

    code = "invalid_output_offset"


STATUS_BY_CODE: Mapping[str, int] = {
    RunNotFound.code: 404,
    RunInProgress.code: 409,
    IdempotencyConflict.code: 409,
    InvalidCommand.code: 422,
    InvalidIdempotencyKey.code: 422,
    InvalidOutputOffset.code: 422,
}
