"""A tool, one call of it, and how a call fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from base.errors import CodedError
from work.deep_work.stop import Stop
from work.states import StepStatus

Authority = str
"""What a job must have been given for a tool: a scope of `accounts.scopes`."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call. `arguments` fit the tool's schema."""

    arguments: Mapping[str, Any]
    call_id: str
    tool_name: str
    job_id: UUID
    conversation_id: UUID
    owner_visitor_id: UUID
    owner_user_id: UUID | None
    job_started_at: datetime
    stop: Stop = field(default_factory=Stop, repr=False)
    """Set when nobody waits for the call any more: whoever waits within it should stop too."""

    @property
    def scope_ref(self) -> str:
        """Whose data the call may touch."""
        return f"conversation:{self.conversation_id}"

    @property
    def principal(self) -> dict[str, str]:
        """Who asks, for the rows that a call makes."""
        return {"type": "job", "id": str(self.job_id)}

    @property
    def rate_principal(self) -> str:
        """Whose minute the call counts in: that of the owner's own requests."""
        return f"user:{self.owner_user_id}" if self.owner_user_id else f"visitor:{self.owner_visitor_id}"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call brought, with references to what it made or used (`box:ID`, `run:ID`)."""

    value: Any
    receipts: Sequence[str] = ()


Executor = Callable[[Invocation], Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call.

    `execute` gets an Invocation and returns what JSON can hold; it runs in a thread of its own, may use the database, and
    must hold no connection while it waits (a ToolResult adds references). It raises ToolFailed, ToolRefused or ToolUnavailable, or any CodedError.
    `safe_to_repeat`: a call that a dying worker left may simply be carried out again.
    """

    name: str
    version: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, an object."""
    execute: Executor = field(repr=False)
    authority: Authority | None = None
    timeout_seconds: float = 30.0
    disclosure: Mapping[str, Any] = field(default_factory=lambda: {"where": "server"})
    """Where and by whom calls are carried out, for whoever reads the step."""
    executor_id: str = "host"
    safe_to_repeat: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What the catalog's digest covers."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "parameters": dict(self.parameters),
            "authority": self.authority,
        }


class ToolError(CodedError):
    """The call had no result. The detail is for the model: it says what to do about it."""

    status: ClassVar[StepStatus] = StepStatus.FAILED
    code = "tool_failed"


class ToolFailed(ToolError):
    """The tool could not do it."""


class ToolRefused(ToolError):
    """The job may not do it."""

    status = StepStatus.REFUSED
    code = "tool_refused"


class ToolUnavailable(ToolError):
    """The tool is not there."""

    status = StepStatus.UNAVAILABLE
    code = "tool_unavailable"
