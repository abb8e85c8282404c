"""Following a run as server-sent events, without polling and without a database connection while waiting.

Events: `output` (`output, offset, next_offset, truncated`), `state` (`state` and what the row says of its end), `end`
(the same, once, as the last). The id of every event is the raw offset from which a client goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from base import wakeups
from runs.models import Run
from runs.services.reading import LogSlice, read_log
from runs.watching import key_of

HEARTBEAT_SECONDS = 15.0
PIECE_BYTES = 64 * 1024
HEARTBEAT = ": still here\n\n"
RETRY_MS = 1000
_FIELDS = (
    "state",
    "exit_status",
    "exit_signal",
    "failure_reason",
    "timed_out",
    "kill_confirmed",
    "dropped_bytes",
)


def events(run_id: UUID, from_offset: int = 0) -> Iterator[str]:
    """The events of a run from the raw `from_offset` on, until it has ended and everything was told.

    A comment goes out every 15 s without news, so that a dead client is noticed and proxies keep the connection. Ends
    quietly if the run does not exist.
    """
    yield f"retry: {RETRY_MS}\n\n"
    position, told = from_offset, ""
    with wakeups.of_this_process.waiting_for(key_of(run_id)) as woken:
        while True:
            woken.clear()
            run = _row(run_id)
            if run is None:
                return
            if run.state != told:
                told = run.state
                yield _event("state", position, _facts(run))
            for piece in _news(run, position):
                position = piece.next_offset
                yield _event("output", position, _shown(piece))
            if run.is_terminal:
                yield _event("end", position, _facts(run))
                return
            yield from _wait(woken)


def _wait(woken: Any) -> Iterator[str]:
    """Wait for a wake; heartbeats meanwhile. Looks again after the longest nap in any case, since a wake can be lost."""
    wakeups.release_connection()
    silent_since = time.monotonic()
    while not woken.wait(min(wakeups.LONGEST_NAP_SECONDS, HEARTBEAT_SECONDS)):
        if time.monotonic() - silent_since >= HEARTBEAT_SECONDS:
            yield HEARTBEAT
            return


def _row(run_id: UUID) -> Run | None:
    return Run.objects.defer("command", "output", "output_state").filter(pk=run_id).first()


def _news(run: Run, position: int) -> Iterator[LogSlice]:
    """Everything readable from `position` on. A terminal row was read before its log, so nothing comes after this."""
    while position < run.last_output_offset:
        piece = read_log(run, position, PIECE_BYTES)
        if piece.next_offset <= position:
            return
        position = piece.next_offset
        yield piece


def _shown(piece: LogSlice) -> dict[str, Any]:
    return {
        "output": piece.output,
        "offset": piece.start,
        "next_offset": piece.next_offset,
        "truncated": piece.truncated,
    }


def _facts(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in _FIELDS}


def _event(name: str, position: int, body: dict[str, Any]) -> str:
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n"
