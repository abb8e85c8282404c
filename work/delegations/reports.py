"""What a delegation that a machine told the end of reports to its owner. Pure.

Never the log of single tools: whoever wants that looks at the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from base.redaction import redact
from base.text import storable
from work import reports
from work.channel.limits import CUT_MARK, PROSE_CHARACTERS

_STATUS = {
    "completed": "completed",
    "refused": "refused by the machine",
    "cancelled": "cancelled on the machine",
    "timeout": "stopped because its time was over",
    "unavailable": "not possible, since the agent was not available",
    "failed": "failed",
}
_LONGEST_SESSION = 128
_LONGEST_DETAIL = 500


@dataclass(frozen=True, slots=True)
class Result:
    """What the machine told."""

    agent: str
    machine: str
    status: str
    prose: str = ""
    detail: str = ""
    session_id: str = ""
    model: str = ""
    reasoning: str = ""
    mode: str = ""
    tool_calls: int = 0
    refused: int = 0
    failed_tools: Sequence[str] = ()


def compose(result: Result) -> str:
    """The report: a line that says how it ended, then what is known, then the agent's own words."""
    blocks = [
        f"Delegation to {_line(result.agent)} on {_line(result.machine)} — {_STATUS[result.status]}.",
        "\n".join(_facts(result)),
        _words(result),
        _tool_line(result.tool_calls),
    ]
    return reports.cut(redact(storable("\n\n".join(block for block in blocks if block))))


def _facts(result: Result) -> list[str]:
    named = [("Model", result.model), ("reasoning", result.reasoning), ("mode", result.mode)]
    known = ", ".join(f"{name}: {_line(value)}" for name, value in named if _line(value))
    facts = [
        f"Session: {_line(result.session_id)[:_LONGEST_SESSION]}" if _line(result.session_id) else "",
        known,
        f"Detail: {_line(result.detail)[:_LONGEST_DETAIL]}" if _line(result.detail) else "",
        _refused_line(result.refused),
    ]
    return [fact for fact in facts if fact]


def _words(result: Result) -> str:
    """The agent's prose and the tool calls that failed, at most 2,000 characters."""
    failed = "\n".join(f"- {_line(tool)}" for tool in result.failed_tools if _line(tool))
    parts = [result.prose.strip(), f"Tool calls that failed:\n{failed}" if failed else ""]
    text = "\n\n".join(part for part in parts if part)
    return text if len(text) <= PROSE_CHARACTERS else text[:PROSE_CHARACTERS] + CUT_MARK


def _refused_line(count: int) -> str:
    if not count:
        return ""
    times = "once" if count == 1 else f"{count} times"
    return f"The machine's policy refused what the agent asked for {times}."


def _tool_line(count: int) -> str:
    return f"{count} tool call{'' if count == 1 else 's'}."


def _line(text: str) -> str:
    """In one line: what a machine says must not look like another block."""
    return " ".join(text.split())
