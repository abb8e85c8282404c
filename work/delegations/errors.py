"""Why a delegation is refused before there is a job, and with which HTTP status the API answers each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from work.errors import MachineError


class DelegationInvalid(MachineError):
    """The delegation is not valid."""

    code = "invalid_delegation_request"
    fields: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        super().__init__(detail="; ".join(f"{name}: {texts[0]}" for name, texts in fields.items()))
        self.fields = dict(fields)  # type: ignore[misc]  # one error, its own fields


class AgentNotAvailable(MachineError):
    """The machine has no such agent, or may not run any."""

    code = "agent_not_available"


class CwdNotAllowed(MachineError):
    """The folder is not inside one that the machine's owner has declared."""

    code = "cwd_not_allowed"


STATUS_BY_CODE: Mapping[str, int] = {
    DelegationInvalid.code: 422,
    AgentNotAvailable.code: 409,
    CwdNotAllowed.code: 422,
}
