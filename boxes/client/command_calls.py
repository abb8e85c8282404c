"""Commands in a box: run and wait, start detached, look at a detached one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from boxes.client.classification import (
    Answer,
    command_error,
    general_error,
    invalid,
    no_result_error,
    success,
)
from boxes.client.commands import CommandResult, Process, parse_process, parse_result
from boxes.client.detached import run_detached
from boxes.client.dialect import Dialect
from boxes.client.exchange import Call, Exchange
from boxes.errors import ProviderError

COMMAND_MARGIN_SECONDS = 15
LONGEST_SYNCHRONOUS_SECONDS = 50
"""The provider's edge cuts requests at about 70 s, so a longer command is started detached and polled."""

START_SECONDS = 30.0
LONGEST_OF_PROVIDER_SECONDS = 600
LONGEST_OF_OLD_SERVERS_SECONDS = 60
TAIL_BYTES = 524_288


class CommandCalls:
    """The part of the client that runs commands."""

    def __init__(
        self,
        exchange: Exchange,
        dialect: Dialect,
        interactive_seconds: float,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._exchange = exchange
        self._dialect = dialect
        self._interactive_seconds = interactive_seconds
        self._sleep = sleep

    def command(self, box_id: str, command: str, timeout_seconds: int) -> CommandResult:
        """Run a command with bash in the box and wait for it, at most `timeout_seconds`.

        Sent once. One that may take more than 50 s is started detached, polled, and ended by us at its timeout.
        RetryLater means that it never ran; Unknown that it may have run or may still run.
        """
        if timeout_seconds > LONGEST_SYNCHRONOUS_SECONDS:
            return run_detached(self, box_id, command, timeout_seconds, self._sleep)
        body = {"command": command, "timeoutSeconds": timeout_seconds}
        answer = self._post(box_id, body, float(timeout_seconds + COMMAND_MARGIN_SECONDS))
        result = parse_result(answer.document or {})
        if result is None:
            raise no_result_error(answer)
        return result

    def start_command(self, box_id: str, command: str, timeout_seconds: int) -> Process:
        """Start a command detached and come back at once. Sent once, as `command` is.

        Whether the provider ends it at `timeout_seconds` is up to the provider. An older server that takes no more than
        60 s says so before anything runs, and is asked again with that.
        """
        seconds = min(timeout_seconds, LONGEST_OF_PROVIDER_SECONDS)
        try:
            return self._start(box_id, command, seconds)
        except ProviderError as error:
            if error.provider_code != "invalid_timeout" or seconds <= LONGEST_OF_OLD_SERVERS_SECONDS:
                raise
        return self._start(box_id, command, LONGEST_OF_OLD_SERVERS_SECONDS)

    def command_status(
        self,
        box_id: str,
        process_id: int,
        *,
        tail_bytes: int = TAIL_BYTES,
        tries: int = 1,
        timeout_seconds: float | None = None,
    ) -> Process:
        """How a detached command stands, with the last `tail_bytes` of each output."""
        path = self._dialect.path(box_id, "commands", str(process_id))
        seconds = timeout_seconds or self._interactive_seconds
        call = Call("command_status", "GET", path, seconds, {"tailBytes": str(tail_bytes)})
        answer = self._exchange.read(call, tries)
        process = parse_process({"processId": process_id, **success(answer, general_error)})
        if process is None:
            raise invalid(answer, "no process")
        return process

    def _start(self, box_id: str, command: str, seconds: int) -> Process:
        body = {"command": command, "timeoutSeconds": seconds, "detached": True}
        answer = self._post(box_id, body, START_SECONDS)
        process = parse_process(answer.document or {})
        if process is None:
            raise no_result_error(answer)
        return process

    def _post(self, box_id: str, body: Mapping[str, Any], seconds: float) -> Answer:
        """A 2xx answer; an output beside `ok: false` is a result, too, so the body is not judged here."""
        path = self._dialect.path(box_id, "commands")
        answer = self._exchange.send(Call("command", "POST", path, seconds, json=body))
        if not 200 <= answer.status < 300:
            raise command_error(answer)
        return answer
