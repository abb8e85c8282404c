"""The tools by which a job uses boxes, under the same quotas and redaction as the API.

Whatever they make carries a key that follows from the call, so a call that is carried out again finds what it made before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from accounts import rates
from accounts.rates import RateLimited
from accounts.scopes import Scope
from base import connections, wakeups
from boxes import services as boxes
from runs import services as runs
from runs.models import Run
from runs.watching import key_of
from work import digests
from work.tools import job_boxes
from work.tools.types import Invocation, Tool, ToolFailed, ToolResult

CREATES_PER_MINUTE = 10
RUNS_PER_MINUTE = 10
BOX_READY_SECONDS = 120
DEFAULT_WAIT_SECONDS = 60
LONGEST_WAIT_SECONDS = 300
MARGIN_SECONDS = 90.0
"""What a call may take besides waiting for its command: a minute for its turn, and the provider's own time."""

OUTPUT_BYTES = 12_000
LARGEST_OFFSET = 2**53
NAP_SECONDS = 1.0


def box_new(call: Invocation) -> ToolResult:
    """A new box that is ready, or as far as it came in two minutes."""
    _count(call, "box_create", CREATES_PER_MINUTE)
    key = _key(call)
    job_boxes.note(call.job_id, key)
    box = boxes.create_box(call.conversation_id, label=call.arguments.get("label"), create_key=key)
    job_boxes.bind(call.job_id, key, box)
    _wait(f"box:{box.pk}", lambda: boxes.has_settled_in(box), BOX_READY_SECONDS, call)
    return ToolResult(
        {"box": box.label, "id": str(box.pk), "state": box.state, "setup": box.setup_status},
        receipts=[f"box:{box.pk}"],
    )


def box_run(call: Invocation) -> ToolResult:
    """A command in a box, waited for; it goes on if it takes longer than that."""
    _count(call, "run_create", RUNS_PER_MINUTE)
    run = runs.start_run(
        call.conversation_id, call.arguments["box"], call.principal, call.arguments["command"], _key(call)
    )
    seconds = call.arguments.get("wait_seconds", DEFAULT_WAIT_SECONDS)
    _wait(key_of(run.pk), lambda: _has_ended(run), seconds, call)
    return _told(run, 0)


def box_output(call: Invocation) -> ToolResult:
    """What a run has printed since, and whether it has ended."""
    run = _own_run(call)
    seconds = call.arguments.get("wait_seconds", 0)
    _wait(key_of(run.pk), lambda: _has_ended(run), seconds, call)
    return _told(run, call.arguments.get("offset", 0))


def box_stop(call: Invocation) -> ToolResult:
    """The end of a box, and of what runs in it."""
    box = boxes.stop_box(call.conversation_id, call.arguments["box"])
    is_stopped = box.stopped_at is not None
    return ToolResult(
        {"box": box.label, "stopped": is_stopped, "stopping": not is_stopped}, receipts=[f"box:{box.pk}"]
    )


def _key(call: Invocation) -> str:
    return f"job-{call.job_id}-{digests.digest(call.call_id)[:32]}"


def _count(call: Invocation, operation: str, limit: int) -> None:
    """Count as one of the owner's own requests of this minute; wait for the next minute if they are used up."""
    while True:
        try:
            return rates.count(call.rate_principal, operation, limit)
        except RateLimited as error:
            connections.release()
            if call.stop.wait(error.retry_after_seconds):
                raise


def _wait(key: str, met: Callable[[], bool], seconds: float, call: Invocation) -> None:
    """Until `met()`, at most so long; no longer than somebody waits for the call."""
    until = time.monotonic() + seconds
    while not call.stop.is_set and not met() and (left := until - time.monotonic()) > 0:
        wakeups.wait_until(key, lambda: call.stop.is_set or met(), seconds=min(left, NAP_SECONDS))
    connections.release()


def _has_ended(run: Run) -> bool:
    run.refresh_from_db()
    return run.is_terminal


def _own_run(call: Invocation) -> Run:
    mine = Run.objects.filter(conversation_id=call.conversation_id)
    run = mine.filter(pk=wanted).first() if (wanted := _run_id(call.arguments["run"])) else None
    if run is None:
        raise ToolFailed("box_run_not_found", "There is no such run in this conversation.")
    return run


def _run_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _told(run: Run, offset: int) -> ToolResult:
    piece = runs.read_log(run, offset, OUTPUT_BYTES) if offset else _tail(run)
    told: dict[str, Any] = {
        "run": str(run.pk),
        "state": run.state,
        "exit_status": run.exit_status,
        **piece_of(piece),
    }
    if run.failure_reason:
        told["failure_reason"] = run.failure_reason
    if not run.is_terminal:
        told["note"] = "It still runs. box_output with this run and offset next_offset tells what comes."
    return ToolResult(told, receipts=[f"run:{run.pk}"])


def _tail(run: Run) -> Any:
    """The end of the output: there is what a command says last."""
    return runs.read_output(run, 0)


def piece_of(piece: Any) -> dict[str, Any]:
    """Output in the words of the tools' results."""
    text: str = piece.output if isinstance(piece, runs.LogSlice) else piece["output"]
    end: int = piece.next_offset if isinstance(piece, runs.LogSlice) else piece["next_offset"]
    data = text.encode()
    cut = len(data) > OUTPUT_BYTES
    shown = data[-OUTPUT_BYTES:].decode("utf-8", "ignore") if cut else text
    missing = cut or (piece.truncated if isinstance(piece, runs.LogSlice) else piece["truncated"])
    return {"output": shown, "beginning_is_missing": bool(missing), "next_offset": end}


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_BOX = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "The box's name (its label) or id.",
}
_WAIT = {
    "type": "integer",
    "minimum": 0,
    "maximum": LONGEST_WAIT_SECONDS,
    "description": f"How long to wait for its end, at most {LONGEST_WAIT_SECONDS} s.",
}
_IN_A_BOX = {"where": "a sandbox machine of the owner's conversation", "network": "as the box has it"}

BOX_TOOLS = (
    Tool(
        name="box_new",
        version="1",
        description=(
            "Start a new sandbox machine (a box) with Linux, bash and its own files, and wait until it is ready. Boxes are few "
            "and cost money: use one for everything. It is stopped when this work ends, so what matters must be in the report."
        ),
        parameters=_schema(
            {"label": {"type": "string", "minLength": 1, "maxLength": 64, "description": "A name for it."}}
        ),
        execute=box_new,
        authority=Scope.BOX_CONTROL.value,
        timeout_seconds=BOX_READY_SECONDS + MARGIN_SECONDS,
        disclosure=_IN_A_BOX,
        safe_to_repeat=True,
    ),
    Tool(
        name="box_run",
        version="1",
        description=(
            "Run a command with bash in a box and wait for its end; the result has its exit status and the end of its output. "
            "One command at a time in a box. A command that takes longer goes on: see box_output."
        ),
        parameters=_schema(
            {
                "box": _BOX,
                "command": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 8000,
                    "description": "Shell text.",
                },
                "wait_seconds": _WAIT,
            },
            "box",
            "command",
        ),
        execute=box_run,
        authority=Scope.BOX_CONTROL.value,
        timeout_seconds=LONGEST_WAIT_SECONDS + MARGIN_SECONDS,
        disclosure=_IN_A_BOX,
        safe_to_repeat=True,
    ),
    Tool(
        name="box_output",
        version="1",
        description="What a command printed that was started by box_run, and whether it has ended. Can wait for its end.",
        parameters=_schema(
            {
                "run": {
                    "type": "string",
                    "pattern": "^[0-9a-fA-F-]{36}$",
                    "description": "As box_run told it.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": LARGEST_OFFSET,
                    "description": "From here on; 0 is the end of it.",
                },
                "wait_seconds": _WAIT,
            },
            "run",
        ),
        execute=box_output,
        authority=Scope.BOX_CONTROL.value,
        timeout_seconds=LONGEST_WAIT_SECONDS + MARGIN_SECONDS,
        disclosure=_IN_A_BOX,
        safe_to_repeat=True,
    ),
    Tool(
        name="box_stop",
        version="1",
        description="Stop a box that is not needed any more, and whatever runs in it. Its files are gone then.",
        parameters=_schema({"box": _BOX}, "box"),
        execute=box_stop,
        authority=Scope.BOX_CONTROL.value,
        timeout_seconds=MARGIN_SECONDS,
        disclosure=_IN_A_BOX,
    ),
)
