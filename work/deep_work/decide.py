"""What a deep-work job needs next. Pure: rows + the model's answer + now + limits -> one action.

`next_action` looks at what is committed and nothing else, so whoever takes a job over goes on where it stands.
`after_answer` says what a whole answer of the model leads to.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from base.text import storable
from work import limits
from work.deep_work.answers import Answer
from work.deep_work.views import JobView, Policy, StepView
from work.model_client import CallWritten
from work.states import JobStatus, StepStatus

WALL_CLOCK = "wall_clock_exceeded"
TOOL_CALLS = "tool_call_limit_reached"
CONTINUATIONS = "continuation_limit_reached"
TOKENS = "token_budget_reached"
COST = "cost_budget_reached"
LIMITS = frozenset({TOOL_CALLS, CONTINUATIONS, TOKENS, COST})
"""A call that meets one of these fails, and then the model is asked once more, without tools, for its report."""

UNPRICED = "model_price_unknown"
TOO_LONG = "invalid_tool_arguments"
LONGEST_CALL_ID = 256
RECURSION = "work_recursion_refused"
RECURSIVE_TOOLS = frozenset(
    {"deep_work", "start_deep_work", "start_job", "create_job", "start_work", "delegate", "start_delegation"}
)
"""Names under which models ask for another job; a job never starts one."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model to go on, or for its report without tools."""

    offers_tools: bool
    limit_code: str | None = None


@dataclass(frozen=True, slots=True)
class CarryOut:
    """Carry out the call that is committed and not yet ended."""

    step: StepView


@dataclass(frozen=True, slots=True)
class Commit:
    """Write the call down; it is carried out next."""

    call: CallWritten
    call_id: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Write the call down as ended: it is not carried out."""

    call: CallWritten
    call_id: str
    status: StepStatus
    code: str


@dataclass(frozen=True, slots=True)
class End:
    """End the job. `final_text` is the model's last word, if it came to one."""

    status: JobStatus
    code: str | None = None
    final_text: str | None = None


Next = Ask | CarryOut | End
Then = Commit | Refuse | End


def next_action(job: JobView, now: datetime, policy: Policy) -> Next:
    """What to do for a job as its rows stand."""
    if job.cancel_code is not None:
        return End(JobStatus.CANCELLED, job.cancel_code)
    if now >= job.started_at + policy.wall_clock:
        return End(JobStatus.BUDGET_EXHAUSTED, WALL_CLOCK)
    if job.steps and job.steps[-1].is_open:
        return CarryOut(job.steps[-1])
    if job.cost_budget_microusd is not None and not policy.has_price:
        return End(JobStatus.FAILED, UNPRICED)
    limit = limit_met(job)
    return Ask(offers_tools=limit is None, limit_code=limit)


def after_answer(job: JobView, answer: Answer, policy: Policy) -> Then:
    """What a whole answer leads to; the job's numbers include the answer's own use."""
    limit = limit_met(job)
    if limit is not None:
        if answer.calls:
            return End(JobStatus.FAILED, "tool_call_after_report_request")
        return End(JobStatus.BUDGET_EXHAUSTED, limit, answer.text)
    if not answer.calls:
        return End(JobStatus.COMPLETED, final_text=answer.text)
    if len(answer.calls) > 1:
        return End(JobStatus.FAILED, "parallel_tool_calls_not_supported")
    return _take(job, answer.calls[0], policy)


def limit_met(job: JobView) -> str | None:
    """The limit that the newest call met, if it did: then only the report is left."""
    last = job.steps[-1] if job.steps else None
    is_met = last is not None and last.is_hosts and last.error_code in LIMITS
    return last.error_code if is_met and last is not None else None


def _take(job: JobView, call: CallWritten, policy: Policy) -> Then:
    call_id = unused(kept_id(call.call_id), {step.call_id for step in job.steps})
    reached = _reached(job, policy)
    if reached is not None:
        return Refuse(_kept(call), call_id, StepStatus.FAILED, reached)
    if call.name in RECURSIVE_TOOLS:
        return Refuse(_kept(call), call_id, StepStatus.REFUSED, RECURSION)
    if _kept(call) is not call:
        return Refuse(_kept(call), call_id, StepStatus.FAILED, TOO_LONG)
    return Commit(call, call_id)


def _reached(job: JobView, policy: Policy) -> str | None:
    """The first limit at which the job may make no further call."""
    bounds: list[tuple[str, int, int | None]] = [
        (TOOL_CALLS, job.tool_call_count, policy.maximum_tool_calls),
        (CONTINUATIONS, job.continuation_count, policy.maximum_continuations),
        (TOKENS, job.tokens_used, job.token_budget),
        (COST, job.cost_microusd, job.cost_budget_microusd),
    ]
    return next((code for code, used, most in bounds if most is not None and used >= most), None)


def _kept(call: CallWritten) -> CallWritten:
    """The call, or where its arguments are longer than can be kept, the call with a note of how long they were."""
    size = len(storable(call.arguments).encode())
    return (
        call
        if size <= limits.ARGUMENT_BYTES
        else replace(call, arguments=json.dumps({"dropped_bytes": size}))
    )


def kept_id(call_id: str) -> str:
    """The call's id, or one made from it where a row cannot hold it."""
    if len(call_id) <= LONGEST_CALL_ID and storable(call_id) == call_id:
        return call_id
    return f"call-{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def unused(call_id: str, known: set[Any]) -> str:
    """The call's id, or one made from it: some servers count their calls from zero in every answer."""
    if call_id not in known:
        return call_id
    return next(name for n in range(2, len(known) + 3) if (name := f"{call_id[:240]}~{n}") not in known)
