"""One tool call: whether it may be carried out, and what came of it. No database."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

import structlog
from jsonschema import Draft202012Validator, ValidationError

from base.errors import CodedError
from base.redaction import redact, redact_mapping
from base.text import keep_first_bytes, storable
from work import digests
from work.deep_work.stop import Stop
from work.deep_work.views import HOST, StepView
from work.models import Job
from work.states import StepStatus
from work.tools import Invocation, Registry, Tool
from work.tools.types import ToolError, ToolResult

log = structlog.get_logger(__name__)

LONGEST_MESSAGE_BYTES = 2_000
MOST_PROBLEMS = 5
EXACT = 2**53
UNKNOWN_TOOL = "unsupported_tool_call"
BAD_ARGUMENTS = "invalid_tool_arguments"
LOST_ARGUMENTS = "tool_arguments_lost"
NOT_ALLOWED = "insufficient_authority"
TIMEOUT = "tool_timeout"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a call has no result. The message is for the model."""

    status: StepStatus
    code: str
    message: str
    retry_after_seconds: float | None = None

    @property
    def error(self) -> dict[str, Any]:
        message = keep_first_bytes(redact(storable(self.message)), LONGEST_MESSAGE_BYTES)
        wait = {} if self.retry_after_seconds is None else {"retry_after_seconds": self.retry_after_seconds}
        return {"code": self.code, "message": message, **wait}


def checked(
    step: StepView, registry: Registry, authority: Collection[str] | None
) -> dict[str, Any] | Problem:
    """The call's arguments, or why it cannot be carried out."""
    tool = registry.get(step.tool_name)
    if tool is None:
        offered = ", ".join(offer.name for offer in registry.offers(authority)) or "none"
        return Problem(
            StepStatus.UNAVAILABLE, UNKNOWN_TOOL, f"There is no such tool. The tools are: {offered}."
        )
    if tool.authority is not None and authority is not None and tool.authority not in authority:
        return Problem(
            StepStatus.REFUSED, NOT_ALLOWED, f"This job was not given {tool.authority}, which the tool needs."
        )
    if step.exact is None:
        return Problem(
            StepStatus.FAILED, LOST_ARGUMENTS, "The arguments of the call were lost. Make the call again."
        )
    return _arguments(step.exact, tool)


def _arguments(text: str, tool: Tool) -> dict[str, Any] | Problem:
    try:
        arguments = _plain(json.loads(text, parse_constant=_no_constant)) if text.strip() else {}
    except (ValueError, RecursionError):
        return Problem(StepStatus.FAILED, BAD_ARGUMENTS, "The arguments are not JSON. Send one JSON object.")
    if digests.storable_json(arguments) != arguments:
        return Problem(
            StepStatus.FAILED,
            BAD_ARGUMENTS,
            "The arguments hold NUL or half characters, or are nested too deeply. Send plain text.",
        )
    errors = Draft202012Validator(dict(tool.parameters)).iter_errors(arguments)
    problems = [
        _said(error) for error in sorted(errors, key=lambda error: list(map(str, error.absolute_path)))
    ]
    if problems or not isinstance(arguments, dict):
        shown = "; ".join(problems[:MOST_PROBLEMS]) or "they must be one JSON object"
        return Problem(StepStatus.FAILED, BAD_ARGUMENTS, f"The arguments do not fit the tool: {shown}.")
    return arguments


def _plain(value: Any) -> Any:
    """The value with 5.0 as 5: a JSON schema takes both for an integer, and tools count on one. Raises ValueError."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError("a number without end")
    return int(value) if value.is_integer() and abs(value) <= EXACT else value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _said(error: ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {error.message[:200]}" if place else error.message[:200]


def problem_of(error: BaseException, tool: Tool) -> Problem:
    """What a failed call is to the model. Of what nobody expected only that it happened."""
    if isinstance(error, ToolError):
        return Problem(error.status, error.code, error.detail)
    if isinstance(error, CodedError):
        wait = getattr(error, "retry_after_seconds", None)
        return Problem(StepStatus.FAILED, error.code, error.detail, wait)
    log.error("tool_failed", tool=tool.name, exc_info=error)
    return Problem(StepStatus.FAILED, "tool_failed", "The tool failed unexpectedly.")


def timed_out(tool: Tool) -> Problem:
    seconds = f"{tool.timeout_seconds:g}"
    return Problem(
        StepStatus.FAILED, TIMEOUT, f"The call took longer than {seconds} s; it may have taken effect."
    )


def outcome_of_problem(step: StepView, tool: Tool | None, problem: Problem) -> dict[str, Any]:
    """The outcome as `complete_job_step` takes it."""
    return _outcome(step, tool, status=problem.status.value, error=problem.error)


def outcome_of_result(step: StepView, tool: Tool, result: Any, most_bytes: int) -> dict[str, Any]:
    """The same for a result: secrets struck out, bounded."""
    receipts = list(result.receipts) if isinstance(result, ToolResult) else []
    value = result.value if isinstance(result, ToolResult) else result
    try:
        kept = bounded(redact_mapping({"result": digests.storable_json(value)})["result"], most_bytes)
    except (ValueError, TypeError, RecursionError):
        problem = Problem(StepStatus.FAILED, "tool_result_invalid", "The tool's result is not JSON.")
        return outcome_of_problem(step, tool, problem)
    kept = {} if kept is None else kept
    return _outcome(step, tool, status=StepStatus.SUCCEEDED.value, result=kept, target_receipt_refs=receipts)


def bounded(value: Any, most_bytes: int) -> Any:
    """The value, or if it is larger a map with the beginning of its JSON. Raises ValueError for what is no JSON."""
    text = digests.canonical(value)
    size = len(text.encode())
    if size <= most_bytes:
        return value
    return {"truncated": True, "bytes": size, "beginning": keep_first_bytes(text, most_bytes)}


def unusable(step: StepView, tool: Tool | None) -> dict[str, Any]:
    """The outcome of a call of which the tool answered what cannot be kept."""
    problem = Problem(StepStatus.FAILED, "tool_result_invalid", "The tool's result cannot be kept.")
    return outcome_of_problem(step, tool, problem)


def _outcome(step: StepView, tool: Tool | None, **changes: Any) -> dict[str, Any]:
    executor: Mapping[str, Any] = (
        {"id": tool.executor_id, "disclosure": dict(tool.disclosure)} if tool else {"id": HOST}
    )
    return {
        "call_id": step.call_id,
        "tool_name": step.tool_name,
        "executor": executor,
        "target_receipt_refs": [],
        "attribution_refs": [],
        **changes,
    }


def authority_of(job: Job) -> frozenset[str] | None:
    """The scopes that the job was given; None where whoever made it may do everything of its owner's."""
    snapshot = job.authority_snapshot
    return frozenset(map(str, snapshot.get("scopes", ()))) if isinstance(snapshot, dict) else None


def invocation(
    job: Job, owner_user_id: UUID | None, step: StepView, arguments: dict[str, Any], stop: Stop
) -> Invocation:
    """The call as its tool gets it. No query."""
    assert job.started_at is not None
    return Invocation(
        arguments=arguments,
        call_id=step.call_id,
        tool_name=step.tool_name,
        job_id=job.pk,
        conversation_id=job.conversation_id,
        owner_visitor_id=job.owner_visitor_id,
        owner_user_id=owner_user_id,
        job_started_at=job.started_at,
        stop=stop,
    )
