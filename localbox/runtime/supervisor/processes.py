"""What /proc says of processes: which are alive, whose they are, and how a whole tree of them is ended."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Table = dict[int, "Process"]


class Process:
    """One line of the process table. `start_time` with `pid` names one process for ever."""

    __slots__ = ("parent", "pid", "session", "start_time", "state")

    def __init__(self, pid: int, stat: str) -> None:
        fields = stat.rsplit(")", 1)[1].split()  # the name before it may hold anything
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.start_time = int(fields[19])

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def look(pid: int) -> Process | None:
    """The process with this pid, also as a zombie, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return Process(pid, file.read())
    except (OSError, IndexError):
        return None


def is_alive(pid: int, start_time: int) -> bool:
    """Whether exactly this process still runs; another one with the same pid does not count."""
    process = look(pid)
    return process is not None and process.alive and process.start_time == start_time


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def table() -> Table:
    """Every process, zombies included."""
    found = (look(pid) for pid in pids())
    return {process.pid: process for process in found if process is not None}


def descendants(root: int, processes: Table) -> Table:
    """The living descendants of `root`, without itself."""
    family = _family(processes, lambda process: process.parent == root)
    return {pid: process for pid, process in family.items() if process.alive and pid != root}


def with_descendants(roots: list[int], processes: Table) -> Table:
    """These processes and all below them, the living ones."""
    family = _family(processes, lambda process: process.pid in roots)
    return {pid: process for pid, process in family.items() if process.alive}


def command_tree(leader: int, known: Table, processes: Table) -> Table:
    """The living processes of one command: its leader, all below it, its whole session, and all below the `known`
    ones that were seen before. Only what left the session and lost its parent as well is not in it."""

    def belongs(process: Process) -> bool:
        seen = known.get(process.pid)
        same = seen is not None and seen.start_time == process.start_time
        return same or process.pid == leader or process.session == leader

    return {pid: process for pid, process in _family(processes, belongs).items() if process.alive}


def of_uid(uid: int) -> list[int]:
    """Living processes whose real, effective or saved uid is `uid`."""
    return [pid for pid in pids() if uid in uids(pid) and lives(pid)]


def tasks_of_user(uid: int) -> int:
    """How many tasks (threads count too) the kernel holds against this user's process limit."""
    return sum(tasks(pid) for pid in pids() if uid in uids(pid)[:1])


def tasks(pid: int) -> int:
    """How many threads a process has; 0 if it is gone."""
    try:
        return os.stat(f"/proc/{pid}/task").st_nlink - 2
    except OSError:
        return 0


def lives(pid: int) -> bool:
    """Whether a process with this pid runs; a zombie does not."""
    process = look(pid)
    return process is not None and process.alive


def uids(pid: int) -> list[int]:
    """Real, effective and saved uid; empty if the process is gone."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            return [int(field) for field in line.split()[1:4]]
    return []


def environment(pid: int) -> list[bytes]:
    """The `NAME=value` entries it was started with; empty if we may not see them."""
    return _read(f"/proc/{pid}/environ").split(b"\0")


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone or, after a change of its uid, not ours to signal."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def kill(members: Table) -> None:
    """SIGKILL processes, all of them stopped first so that none can fork while the list is walked."""
    for pid in members:
        send(pid, signal.SIGSTOP)
    for pid in members:
        send(pid, signal.SIGKILL)


def _family(processes: Table, belongs: Callable[[Process], bool]) -> Table:
    """Every process that belongs, and every child of one that does, to any depth."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found: Table = {}
    todo = [process for process in processes.values() if belongs(process)]
    while todo:
        process = todo.pop()
        if process.pid not in found:
            found[process.pid] = process
            todo += children.get(process.pid, [])
    return found


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
