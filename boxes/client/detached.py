"""A command that may take longer than a request may: started detached, polled, and ended at its timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from boxes.client.commands import TIMEOUT_STATUS, CommandResult, Process
from boxes.errors import ProviderCode, ProviderError, Unknown

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 2.0
KILL_SECONDS = 30

KILL_SCRIPT = """p={pid}
alive() {{ kill -0 -- -$p 2>/dev/null || kill -0 $p 2>/dev/null; }}
end() {{ kill -$1 -- -$p 2>/dev/null || kill -$1 $p 2>/dev/null; }}
alive || {{ echo ended; exit 0; }}
end TERM && echo signalled
for _ in 1 2 3 4 5 6 7 8 9 10; do alive || break; sleep 0.5; done
alive && end KILL && sleep 0.5
alive || echo ended
"""


class Commands(Protocol):
    """What is needed of the client."""

    def start_command(self, box_id: str, command: str, timeout_seconds: int) -> Process: ...

    def command_status(self, box_id: str, process_id: int) -> Process: ...

    def command(self, box_id: str, command: str, timeout_seconds: int) -> CommandResult: ...


def run_detached(
    commands: Commands,
    box_id: str,
    command: str,
    timeout_seconds: int,
    sleep: Callable[[float], object] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> CommandResult:
    """The result of a command that takes at most `timeout_seconds`.

    Once it was started, no error but Unknown is raised: a box that is gone meanwhile does not mean that nothing ran.
    A single look that fails is repeated until the timeout.
    """
    process = commands.start_command(box_id, command, timeout_seconds)
    ends_at = monotonic() + timeout_seconds
    pause = FIRST_PAUSE_SECONDS
    while process.state == "running" and monotonic() < ends_at:
        sleep(min(pause, max(ends_at - monotonic(), 0)))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        process = _seen(commands, box_id, process)
    if process.state == "running":
        return _ended(commands, box_id, process)
    return _result(process)


def _seen(commands: Commands, box_id: str, process: Process) -> Process:
    """The process as it is now, or as it was if this look told nothing."""
    try:
        seen = commands.command_status(box_id, process.process_id)
    except ProviderError as error:
        if error.gone_code is None:
            return process
        raise _unknown(error) from error
    return replace(seen, pid=seen.pid or process.pid)


def _result(process: Process) -> CommandResult:
    if process.state == "lost":
        raise Unknown(
            ProviderCode.REFUSED, provider_code="command_lost", log_detail="the provider lost the command"
        )
    return process.result


def _ended(commands: Commands, box_id: str, process: Process) -> CommandResult:
    """End the command now, and tell whether it is known to be dead."""
    words = _kill(commands, box_id, process)
    seen = _seen(commands, box_id, process)
    if seen.state == "exited" and "signalled" not in words:
        return seen.result  # it had ended by itself just before
    status = seen.result.exit_status if seen.state == "exited" else None
    return replace(
        seen.result,
        exit_status=TIMEOUT_STATUS if status is None else status,
        timed_out=True,
        still_running="ended" not in words and seen.state != "exited",
    )


def _kill(commands: Commands, box_id: str, process: Process) -> list[str]:
    if process.pid is None:
        return []
    try:
        return commands.command(box_id, KILL_SCRIPT.format(pid=process.pid), KILL_SECONDS).stdout.split()
    except ProviderError as error:
        if error.gone_code is not None:
            raise _unknown(error) from error
        return []


def _unknown(error: ProviderError) -> Unknown:
    return Unknown(
        error.code,
        provider_status=error.provider_status,
        provider_code=error.provider_code,
        log_detail=error.log_detail,
    )
