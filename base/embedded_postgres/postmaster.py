"""What the files of a server say about its processes, checked against the processes themselves."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from . import processes
from .errors import EmbeddedPostgresError
from .layout import Layout
from .lockfile import LockFile

# How a server is asked to end, and for how long (seconds) each: PostgreSQL's fast shutdown, which rolls back and writes a
# checkpoint; its immediate one, which leaves the work to the next start; then without asking.
ENDINGS = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
ORPHAN_SECONDS = 1.0  # orphans see the death of their server by themselves, unless they are busy


class State(StrEnum):
    RUNNING = "running"
    STARTING = "starting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    STALE = "stale"  # not running, but its pid file says that it is: it was killed


@dataclass(frozen=True)
class PidFile:
    """PostgreSQL's `postmaster.pid`. `status` is "" while the file is being written."""

    pid: int
    status: str


def read_pid_file(data: Path) -> PidFile | None:
    """None if there is none; pid 0 if it is empty or garbled."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    number = lines[0].strip().lstrip("-") if lines else ""
    status = lines[7].strip() if len(lines) > 7 else ""
    return PidFile(int(number) if number.isdigit() else 0, status)


def observe(layout: Layout) -> tuple[State, int | None]:
    """The server's state and its pid, None when no server process lives."""
    found = read_pid_file(layout.data)
    if found is None:
        return State.STOPPED, None
    if not _is_server(processes.command_line(found.pid), layout):
        return State.STALE, None
    known = {"ready": State.RUNNING, "standby": State.RUNNING, "stopping": State.STOPPING}
    return known.get(found.status, State.STARTING), found.pid


def living(layout: Layout) -> tuple[list[int], list[int]]:
    """The server's main process (at most one, however it was started), and its other processes."""
    _, main = observe(layout)
    family = processes.matching(
        lambda arguments: _is_server(arguments, layout) or _is_backend(arguments, layout)
    )
    return ([main] if main else []), [pid for pid in family if pid != main]


def end(layout: Layout) -> None:
    """End every process of the server, with and without its main process. Returns when the data is in nobody's use.

    Raises `EmbeddedPostgresError` if something that cannot be seen or signalled from here keeps using it.
    """
    lock = LockFile(layout.server_lock)

    def is_unused() -> bool:
        processes.reap_zombies("postgres", keep=frozenset())
        return not lock.is_taken() and not any(living(layout))

    if processes.wait_until(is_unused, 0):
        return
    for signal_number, seconds in ENDINGS:
        main, others = living(layout)
        processes.send(main or others, signal_number)
        if processes.wait_until(is_unused, seconds if main else ORPHAN_SECONDS):
            return
    raise EmbeddedPostgresError(
        "will_not_stop",
        f"The database in {layout.data} is in use by a process that cannot be ended from here; is it shared with a container?",
    )


def remove_stale_pid_file(layout: Layout) -> None:
    """A pid file without its server: PostgreSQL would refuse to start if any process has that pid now."""
    if observe(layout)[0] is State.STALE:
        (layout.data / "postmaster.pid").unlink(missing_ok=True)


def _is_server(arguments: list[str], layout: Layout) -> bool:
    return bool(arguments) and arguments[0].endswith("postgres") and str(layout.data) in arguments


def _is_backend(arguments: list[str], layout: Layout) -> bool:
    return bool(arguments) and arguments[0].startswith(f"postgres: {layout.name}:")
