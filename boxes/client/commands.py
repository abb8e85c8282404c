"""What became of a command, in every form in which the provider may say it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boxes.client.bodies import first, text, whole_number

TIMEOUT_STATUS = 124
"""Exit status of a command that was ended at its timeout and reported none, as timeout(1) has it."""

_RESULT_FIELDS = (
    "stdout",
    "stderr",
    "exitCode",
    "exit_code",
    "returnCode",
    "exitStatus",
    "exit_status",
    "signal",
    "timedOut",
    "timed_out",
    "pid",
    "processId",
    "present",
)
_STATUS_FIELDS = ("exitCode", "exit_code", "returnCode", "return_code", "exitStatus", "exit_status")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A finished command, or for a detached start the process.

    `exit_status` is None if the provider did not say it and nothing lets us know; a death by signal is 128 + its
    number, an end at the timeout without a status 124. `truncated` says that output is missing. `still_running` is true
    only if a command outlived its timeout and could not be shown to be dead. `raw` is the answer itself.
    """

    exit_status: int | None
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    pid: int | None
    raw: Mapping[str, Any]
    still_running: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """A detached command at one moment. `state` is `running`, `exited` or `lost`; `lost` is no proof of an end."""

    process_id: int
    pid: int | None
    state: str
    result: CommandResult


def parse_result(document: Mapping[str, Any]) -> CommandResult | None:
    """The result that an answer holds; None if it holds nothing of a command."""
    body = document["result"] if isinstance(document.get("result"), dict) else document
    if not any(name in body for name in _RESULT_FIELDS):
        return None
    timed_out = first(body, "timedOut", "timed_out") is True
    flags = ("stdoutTruncated", "stdout_truncated", "stderrTruncated", "stderr_truncated", "truncated")
    return CommandResult(
        exit_status=_exit_status(document, body, timed_out),
        stdout=text(body, "stdout") or "",
        stderr=text(body, "stderr") or "",
        timed_out=timed_out,
        truncated=any(body.get(name) is True for name in flags),
        pid=_positive(whole_number(body, "pid")),
        raw=document,
    )


def parse_process(document: Mapping[str, Any]) -> Process | None:
    """The process of a detached start or of a status answer; None without a usable process id."""
    result = parse_result(document)
    process_id = _positive(whole_number(document, "processId", "process_id"))
    if result is None or process_id is None:
        return None
    state = text(document, "status")
    if state not in {"running", "exited", "lost"}:
        state = "exited" if document.get("running") is False else "running"
    return Process(process_id, result.pid, state, result)


def _exit_status(document: Mapping[str, Any], body: Mapping[str, Any], timed_out: bool) -> int | None:
    status = whole_number(body, *_STATUS_FIELDS)
    if status is not None:
        return status
    number = _signal_number(body.get("signal"))
    if number is not None:
        return 128 + number
    if timed_out:
        return TIMEOUT_STATUS
    failed = any(source.get(name) is False for source in (document, body) for name in ("ok", "success"))
    bare_output = (
        "stdout" in body and "processId" not in body and not any(name in body for name in _STATUS_FIELDS)
    )
    return 0 if bare_output and not failed else None


def _signal_number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 < value < 128 else None
    if not isinstance(value, str):
        return None
    name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
    known = signal.Signals.__members__.get(name)
    return (
        int(known) if known else _signal_number(int(value)) if value.isdecimal() and len(value) < 4 else None
    )


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None
