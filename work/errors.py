"""Errors of the work app, and with which HTTP status the API answers each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from base.errors import CodedError


class WorkError(CodedError):
    """The request about a job could not be done."""

    code = "work_job_failed"


class JobInvalid(WorkError):
    """The job is not valid."""

    code = "invalid_work_job"
    fields: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        super().__init__(detail="; ".join(f"{name}: {texts[0]}" for name, texts in fields.items()))
        self.fields = dict(fields)  # type: ignore[misc]  # one error, its own fields


class JobNotFound(WorkError):
    """There is no such job."""

    code = "work_job_not_found"


class JobTerminal(WorkError):
    """The job has ended."""

    code = "work_job_terminal"


class InvalidTransition(WorkError):
    """A job that waits cannot end like this."""

    code = "invalid_work_job_transition"


class JobFenced(WorkError):
    """Another worker holds the job now; nothing was written."""

    code = "fenced"


class JobHeld(WorkError):
    """A worker is at work on the job."""

    code = "work_job_held"


class NotDriven(WorkError):
    """A delegation is done by an agent on its machine, and cannot be driven here."""

    code = "work_job_not_driven"


class JobNotAcceptingSteps(WorkError):
    """Only a running job takes steps."""

    code = "work_job_not_accepting_steps"


class StepLimitReached(WorkError):
    """A job has at most 64 steps."""

    code = "work_job_step_limit_reached"


class StepNotFound(WorkError):
    """The job has no such step."""

    code = "work_job_step_not_found"


class StepTerminal(WorkError):
    """The step has ended."""

    code = "work_job_step_is_terminal"


class StepOutcomeConflict(WorkError):
    """The step has ended with another outcome."""

    code = "work_job_step_outcome_conflict"


class InvalidToolArguments(WorkError):
    """The arguments of a tool call are text of at most 262,144 bytes."""

    code = "invalid_tool_arguments"


class InvalidToolOutcome(WorkError):
    """The outcome of a tool call does not fit the call."""

    code = "invalid_tool_outcome"


class IncidentNotFound(WorkError):
    """There is no such incident."""

    code = "incident_not_found"


class MachineError(WorkError):
    """The request about a machine could not be done."""

    code = "machine_request_failed"


class PairingInvalid(MachineError):
    """The machine's description is not valid."""

    code = "invalid_pairing"
    fields: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        super().__init__(detail="; ".join(f"{name}: {texts[0]}" for name, texts in fields.items()))
        self.fields = dict(fields)  # type: ignore[misc]


class PairingNotFound(MachineError):
    """There is no such pairing."""

    code = "pairing_not_found"


class PairingPending(MachineError):
    """The owner has not approved the pairing yet."""

    code = "pairing_pending"


class PairingExpired(MachineError):
    """The pairing has expired; start another one."""

    code = "pairing_expired"


class PairingConsumed(MachineError):
    """The pairing was used; start another one."""

    code = "pairing_consumed"


class TooManyMachines(MachineError):
    """A user has at most 8 paired machines; revoke one first."""

    code = "too_many_machines"


class MachineNotFound(MachineError):
    """There is no such machine."""

    code = "machine_not_found"


class MachineRevoked(MachineError):
    """The machine was revoked."""

    code = "machine_revoked"


class MachineExpired(MachineError):
    """The machine's token has expired; pair it again."""

    code = "machine_expired"


STATUS_BY_CODE: Mapping[str, int] = {
    JobInvalid.code: 422,
    JobNotFound.code: 404,
    JobTerminal.code: 409,
    InvalidTransition.code: 409,
    JobFenced.code: 409,
    JobHeld.code: 409,
    NotDriven.code: 409,
    JobNotAcceptingSteps.code: 409,
    StepLimitReached.code: 409,
    StepNotFound.code: 404,
    StepTerminal.code: 409,
    StepOutcomeConflict.code: 409,
    IncidentNotFound.code: 404,
    InvalidToolArguments.code: 422,
    InvalidToolOutcome.code: 422,
    PairingInvalid.code: 422,
    PairingNotFound.code: 404,
    PairingExpired.code: 410,
    PairingConsumed.code: 404,
    TooManyMachines.code: 409,
    MachineNotFound.code: 404,
    MachineRevoked.code: 409,
    MachineExpired.code: 409,
}
