"""What a job tells its owner at the end. Pure.

A model's own last word is the report, unchanged. Whatever else a job ends with begins with a line that says how it ended, so
that half a text never reads like success.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from base.text import keep_first_bytes, storable
from work.limits import REPORT_BYTES
from work.states import JobKind, JobStatus

_LONGEST_GOAL_BYTES = 2_000
_SUMMARISED_STEPS = 40


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of a job when it ends."""

    kind: str
    status: str
    goal: str
    error_code: str | None = None
    text: str = ""
    """What was written so far."""
    final_text: str | None = None
    """What the model, or the agent, said as its last word; None where it did not come to that."""
    agent: str = ""
    machine: str = ""
    steps: Sequence[tuple[str, str]] = ()
    """Tool and status of each step, in order."""


def compose(ending: Ending) -> str:
    """The report: never empty, at most 8,000 bytes, whole characters."""
    final = _clean(ending.final_text)
    if final:
        return cut(final)
    text = _clean(ending.text)
    if ending.status == JobStatus.COMPLETED and text and not _is_speechless(ending):
        return cut(text)
    if text:
        return cut(f"{status_line(ending)}\n\n{text}")
    return cut(_fallback(ending))


def status_line(ending: Ending) -> str:
    """How it ended, in one line."""
    if ending.kind == JobKind.DELEGATION:
        return _delegation_line(ending)
    if _is_speechless(ending):
        return "Deep work job is completed, but the model's last answer was empty."
    return f"Deep work job {_ENDED[ending.status]}{_reason(ending)}."


def _is_speechless(ending: Ending) -> bool:
    """Whether the model ended its work with an answer that says nothing: what it wrote before is not its last word."""
    is_done = ending.kind == JobKind.DEEP_WORK and ending.status == JobStatus.COMPLETED
    return is_done and ending.final_text is not None and not _clean(ending.final_text)


def _reason(ending: Ending) -> str:
    code = _clean(ending.error_code)
    return f" ({code})" if code and code != ending.status else ""


def cut(text: str) -> str:
    """The text in at most 8,000 bytes, never a part of a character."""
    return keep_first_bytes(text, REPORT_BYTES)


def appended(text: str, delta: str, offset: int | None = None) -> str:
    """The text with `delta` at its end, or in place of what follows its first `offset` bytes; at most 8,000 bytes."""
    kept = text if offset is None else keep_first_bytes(text, offset)
    return cut(kept + storable(delta))


_ENDED: dict[str, str] = {
    JobStatus.COMPLETED: "is completed",
    JobStatus.FAILED: "failed",
    JobStatus.INTERRUPTED: "was interrupted",
    JobStatus.BUDGET_EXHAUSTED: "was stopped at a limit",
    JobStatus.CANCELLED: "was cancelled",
}


def _fallback(ending: Ending) -> str:
    goal = f"Goal: {keep_first_bytes(storable(ending.goal), _LONGEST_GOAL_BYTES)}"
    if ending.kind == JobKind.DELEGATION:
        return f"{_delegation_line(ending)} {_delegation_rest(ending)}\n\n{goal}"
    return f"{status_line(ending)} {_steps_line(ending.steps)}\n\n{goal}"


def _delegation_line(ending: Ending) -> str:
    agent, machine = _clean(ending.agent), _clean(ending.machine)
    subject = f"Delegation to {agent or 'the agent'} on {machine or 'the machine'}"
    if ending.status == JobStatus.INTERRUPTED:
        return f"{subject} was interrupted by a server restart."
    return f"{subject} {_ENDED[ending.status]}{_reason(ending)}."


def _delegation_rest(ending: Ending) -> str:
    if ending.status == JobStatus.INTERRUPTED:
        return "It did not complete; it can be started again."
    if ending.status == JobStatus.CANCELLED:
        return "What the agent had changed by then is still there."
    return "No result was reported."


def _steps_line(steps: Sequence[tuple[str, str]]) -> str:
    if not steps:
        return "By then no tool calls had completed."
    shown = ", ".join(f"{_clean(tool)}:{status}" for tool, status in steps[:_SUMMARISED_STEPS])
    more = f" and {len(steps) - _SUMMARISED_STEPS} more" if len(steps) > _SUMMARISED_STEPS else ""
    return f"Tool calls by then: {shown}{more}."


def _clean(text: str | None) -> str:
    return storable(text or "").strip()
