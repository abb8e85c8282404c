"""Looking at and signalling processes that are not our children, by what everyone may read in /proc.

/proc/PID/cwd and exe are closed to the root of a container for other accounts, so only stat and cmdline are used.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PROC = Path("/proc")
POLL_SECONDS = 0.01


def start_time(pid: int) -> int | None:
    """When the process started, in clock ticks since boot: with the pid it names one process. None for none or a zombie."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def is_alive(pid: int) -> bool:
    """A zombie has ended, whatever its parent thinks."""
    return start_time(pid) is not None


def command_line(pid: int) -> list[str]:
    """The arguments of the process; [] for none, a zombie or a kernel thread."""
    try:
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).rstrip("\0").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def matching(is_ours: Callable[[list[str]], bool]) -> list[int]:
    """The living processes whose command line fulfils `is_ours`."""
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if is_ours(command_line(pid)) and is_alive(pid)]


def send(pids: Iterable[int], signal_number: signal.Signals) -> None:
    """Signal those that still exist."""
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            continue


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def reap_zombies(command_name: str, *, keep: frozenset[int]) -> None:
    """Bury ended children of this process with this command name, except `keep`, whose ends somebody waits for.

    Orphans of a killed server come to this process when it is a subreaper. Other children are not touched.
    """
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) not in keep and _is_own_zombie(entry, command_name):
            try:
                os.waitpid(int(entry.name), os.WNOHANG)
            except ChildProcessError:
                continue


def _is_own_zombie(entry: Path, command_name: str) -> bool:
    try:
        name, _, rest = (entry / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, parent = rest.split()[:2]
    return name == command_name and state == "Z" and int(parent) == os.getpid()
