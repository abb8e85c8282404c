"""Following a run without polling, and without a database connection while waiting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from base import wakeups
from runs.models import Run
from runs.services.reading import LogSlice, read_log
from runs.watching import key_of

HEARTBEAT_SECONDS = 15.0
PIECE_BYTES = 64 * 1024
RETRY_MS = 1000
_FACTS = (
    "state",
    "exit_status",
    "exit_signal",
    "failure_reason",
    "timed_out",
    "kill_confirmed",
    "dropped_bytes",
)


@dataclass(frozen=True, slots=True)
class Printed:
    """Output that was not told before."""

    piece: LogSlice


@dataclass(frozen=True, slots=True)
class Stands:
    """The run's state is another than before; `is_end` on the last event of all."""

    run: Run
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing happened for a while."""


News = Printed | Stands | Silent


def follow(
    run_id: UUID, from_offset: int = 0, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> Iterator[News]:
    """What happens to a run from the raw `from_offset` on, until it has ended and everything was told.

    `Silent` comes every `heartbeat_seconds` without news. Ends at once if the run does not exist.
    """
    position, told = from_offset, ""
    with wakeups.of_this_process.waiting_for(key_of(run_id)) as woken:
        while (run := _row(run_id)) is not None:
            if run.state != told:
                told = run.state
                yield Stands(run)
            for piece in _readable(run, position):
                position = piece.next_offset
                yield Printed(piece)
            if run.is_terminal:
                yield Stands(run, is_end=True)
                return
            if not _wait(woken, heartbeat_seconds):
                yield Silent()


def events(
    run_id: UUID, from_offset: int = 0, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> Iterator[str]:
    """The same as server-sent events: `output` (`output, offset, next_offset, truncated`), `state` and last `end`.

    The id of every event is the raw offset from which a client goes on. A comment stands for `Silent`, so that a dead
    client is noticed and proxies keep the connection.
    """
    position = from_offset
    yield f"retry: {RETRY_MS}\n\n"
    for news in follow(run_id, from_offset, heartbeat_seconds=heartbeat_seconds):
        match news:
            case Printed(piece):
                position = piece.next_offset
                yield _event("output", position, _shown(piece))
            case Stands(run, is_end):
                yield _event(
                    "end" if is_end else "state", position, {name: getattr(run, name) for name in _FACTS}
                )
            case Silent():
                yield ": still here\n\n"


def _wait(woken: threading.Event, seconds: float) -> bool:
    """Wait for a wake, at most so long; the longest nap counts as one, since a wake can be lost. False after `seconds`."""
    wakeups.release_connection()
    silent_since = time.monotonic()
    was_woken = woken.wait(min(wakeups.LONGEST_NAP_SECONDS, seconds))
    woken.clear()
    return was_woken or time.monotonic() - silent_since < seconds


def _row(run_id: UUID) -> Run | None:
    return Run.objects.defer("command", "output", "output_state").filter(pk=run_id).first()


def _readable(run: Run, position: int) -> Iterator[LogSlice]:
    """Everything from `position` on. The row was read before its log, so a terminal row has nothing after this."""
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


def _event(name: str, position: int, body: dict[str, Any]) -> str:
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n"
