"""Following a run without polling, and without a database connection while waiting or sending."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError

from base import connections, wakeups
from runs import glimpses
from runs.glimpses import Glimpse
from runs.models import Run
from runs.services.reading import LogSlice, read_log
from runs.watching import key_of

logger = structlog.get_logger(__name__)
HEARTBEAT_SECONDS = 15.0
AGAIN_SECONDS = 1.0
"""After the database could not be asked: the stream goes on when it is there again."""
PERMITTED_SECONDS = 10.0
"""How long who follows is told something before it is asked again whether they may."""
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

    Holds no database connection while it waits, or while its caller is busy with what it got. `Silent` comes every
    `heartbeat_seconds` without news. Ends at once if the run does not exist, and before the run's end in a process that is
    asked to end: who follows goes on from the last offset elsewhere.
    """
    position, told = from_offset, ""
    with (
        wakeups.of_this_process.waiting_for(key_of(run_id)) as woken,
        glimpses.of_this_process.at(run_id) as look,
    ):
        while True:
            try:
                seen = look()
                piece = _next_piece(seen, position) if seen else None
            except (OperationalError, InterfaceError) as error:
                logger.warning("run_not_readable", run=str(run_id), error=type(error).__name__)
                connections.release()
                if wakeups.of_this_process.is_over:
                    return
                time.sleep(AGAIN_SECONDS)
                yield Silent()
                continue
            connections.release()  # whoever reads slowly keeps us waiting at each yield
            if seen is None:
                return
            if seen.run.state != told:
                told = seen.run.state
                yield Stands(seen.run)
            if piece is not None:
                position = piece.next_offset
                yield Printed(piece)
            elif seen.run.is_terminal:
                yield Stands(seen.run, is_end=True)
                return
            elif wakeups.of_this_process.is_over:
                return
            elif not _wait(woken, heartbeat_seconds):
                yield Silent()


def events(
    run_id: UUID,
    from_offset: int = 0,
    *,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    is_permitted: Callable[[], bool] = lambda: True,
) -> Iterator[str]:
    """The same as server-sent events: `output` (`output, offset, next_offset, truncated`), `state` and last `end`.

    The id of every event is the raw offset from which a client goes on. A comment stands for `Silent`, so that a dead
    client is noticed and proxies keep the connection. `is_permitted` was true when this began; where it is no longer, nothing
    more is told, ten seconds later at the latest.
    """
    position, asked_at = from_offset, time.monotonic()
    connections.release()
    yield f"retry: {RETRY_MS}\n\n"
    for news in follow(run_id, from_offset, heartbeat_seconds=heartbeat_seconds):
        if time.monotonic() - asked_at >= PERMITTED_SECONDS:
            if not _is_still(is_permitted):
                return
            asked_at = time.monotonic()
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


def _is_still(permitted: Callable[[], bool]) -> bool:
    """What it answers; no, where the database cannot be asked: who follows comes back and is judged then."""
    try:
        return permitted()
    except (OperationalError, InterfaceError):
        return False
    finally:
        connections.release()


def _wait(woken: threading.Event, seconds: float) -> bool:
    """Wait for a wake, at most so long; the longest nap counts as one, since a wake can be lost. False after `seconds`."""
    silent_since = time.monotonic()
    was_woken = woken.wait(min(wakeups.LONGEST_NAP_SECONDS, seconds))
    woken.clear()
    return was_woken or time.monotonic() - silent_since < seconds


def _next_piece(seen: Glimpse, position: int) -> LogSlice | None:
    """What follows `position`, from the end of the output that is there already, or else from the whole log."""
    run = seen.run
    if position >= run.last_output_offset:
        return None
    if seen.tail.spans and seen.tail.start <= position:
        read = seen.tail.read(position)
        start, end = max(read.start, position), read.end
        if end > position:
            return LogSlice(read.text, position, start, end, run.output_base_offset, run.dropped_bytes)
    piece = read_log(run, position, PIECE_BYTES)
    return piece if piece.next_offset > position else None


def _shown(piece: LogSlice) -> dict[str, Any]:
    return {
        "output": piece.output,
        "offset": piece.start,
        "next_offset": piece.next_offset,
        "truncated": piece.truncated,
    }


def _event(name: str, position: int, body: dict[str, Any]) -> str:
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n"
