"""The sandbox with namespaces of its own: the box sees its own processes, a read-only system, its home and /tmp.

bwrap builds it once, when the box starts, and runs the namespace's first process. Each command is a fork of the
supervisor that joins the namespaces: no helper program, nothing of the command in the host's process list. Killing
the first process ends everything in the namespace, whatever it did to detach.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal

from . import kernel, mounts, shell
from .descriptors import arrange
from .fault import Fault
from .paths import View
from .sandbox import Sandbox, become, prepare_child
from .settings import HOME, TMP, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_START_SECONDS = 20.0
_NS_GET_USERNS = 0xB701  # ioctl: the user namespace that owns another namespace
_RESERVE = 32  # processes beyond the box's limit, so that a box at its limit can still be given a command
_LOG = "init.log"
_LOG_BYTES = 1000

# Numbers of the files that bwrap and the first process are given.
_LIFE, _READY, _INFO, _FIRST_FILE = 3, 4, 5, 6

# The first process: nothing in the box can end it, orphans come to it and are reaped, and it ends when the other end
# of descriptor 3 does, which only the supervisor holds.
_DEAF = 'trap "" HUP INT QUIT TERM USR1 USR2 PIPE TSTP; echo >&4; exec 4>&- 2>/dev/null; '
_FIRST_PROCESS = {
    "bash": _DEAF + "while read -r _ <&3; do :; done",
    "sh": _DEAF + "while :; do sleep 2147483647 & wait; done",  # reaps only while it waits
}


class BwrapSandbox(Sandbox):
    """Needs bwrap and a kernel that lets an ordinary user make namespaces."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.view = View(HOME, TMP)
        self.shell = shell.find()
        self._monitor = 0  # bwrap itself, our child; it ends with the namespace
        self._ends: list[int] = []  # pidfds of the namespace's first process and of bwrap
        self._namespaces: list[int] = []  # open, in the order in which they are joined
        self._processes: tuple[int, int] | None = None  # process namespaces: the box's and our own
        self._life = -1  # held open: the first process ends with it

    def start(self) -> None:
        kernel.become_subreaper()
        held, self._life = os.pipe()
        told, tell = os.pipe()
        ready, say_ready = os.pipe()
        self._monitor = os.fork()
        if self._monitor == 0:
            self._become_bwrap([held, say_ready, tell])
        self._ends.append(os.pidfd_open(self._monitor))
        for fd in (held, say_ready, tell):
            os.close(fd)
        try:
            first = self._await_start(told, ready)
            self._ends.insert(0, os.pidfd_open(first))
            self._namespaces = _open_namespaces(first, self.settings.network)
            self._processes = _process_namespaces(first)
        except (OSError, ValueError) as error:
            raise Fault("start_failed", f"bwrap did not start the box: {_last_words() or error}") from error
        finally:
            os.close(told)
            os.close(ready)

    def enter(self) -> None:
        become(self.settings.uid)
        for fd in self._namespaces:
            kernel.join_namespace(fd)

    def fork(self) -> int:
        """A child starts in the process namespace that its parent chose for its children; only root may choose."""
        if self._processes is None:
            return os.fork()
        box, own = self._processes
        pid = -1
        kernel.join_namespace(box)
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                kernel.join_namespace(own)
        return pid

    def enter_processes(self) -> int | None:
        if self._processes is not None:
            return None
        # A process that has joined a process namespace stays outside; its child is in it.
        return os.fork() or None

    def is_gone(self, pid: int) -> bool:
        return pid == self._monitor

    def kill_all(self) -> bool:
        """The kernel ends the whole namespace with its first process, and that one last."""
        left = [fd for fd in self._ends if not select.select([fd], [], [], 0)[0]]
        for fd in left:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        return bool(left)

    def _become_bwrap(self, given: list[int]) -> NoReturn:
        """In the child: exec bwrap as the box's user. What goes wrong is in the log that the supervisor reads."""
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            log = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            os.dup2(log, 2)
            prepare_child()
            become(self.settings.uid)
            arguments, files = self._arguments()
            arrange([nothing, nothing, log, *given, *files])
            self._limit_user()
            os.execve(arguments[0], arguments, {"BOX_ID": self.settings.box_id})  # noqa: S606 - as intended
        except BaseException as error:
            os.write(2, str(error).encode())
        finally:
            os._exit(127)

    def _arguments(self) -> tuple[list[str], list[int]]:
        program = self.settings.bwrap or "bwrap"
        own = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        own += [] if self.settings.network else ["--unshare-net"]
        life = ["--as-pid-1", "--die-with-parent", "--new-session", "--hostname", "box"]
        files, given = mounts.arguments(self.settings, _FIRST_FILE)
        name = os.path.basename(self.shell)
        first = [self.shell, "-c", _FIRST_PROCESS[name], "box"]
        return [program, *own, *life, *files, "--info-fd", str(_INFO), "--", *first], given

    def _limit_user(self) -> None:
        """Above the limit that each command has: the ceiling of the namespace as a whole. For an ordinary user it
        would count all that this user runs, so there it is left alone."""
        if self.settings.uid is not None:
            most = self.settings.limits.processes + _RESERVE
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))

    def _await_start(self, told: int, ready: int) -> int:
        """The first process's pid, once it runs. Raises OSError or ValueError when bwrap gave up."""
        first = int(json.loads(_read_until(told, b"}"))["child-pid"])
        _read_until(ready, b"\n")
        return first


def _read_until(fd: int, end: bytes) -> bytes:
    data = b""
    while end not in data:
        if not select.select([fd], [], [], _START_SECONDS)[0]:
            raise TimeoutError("it took too long")
        more = os.read(fd, 4096)
        if not more:
            raise BrokenPipeError("it ended")
        data += more
    return data


def _open_namespaces(pid: int, network: bool) -> list[int]:
    """The namespaces of a process. First the user namespace that owns the others and so lets us into them, last the
    one that its user lives in: bwrap makes a second one when it makes a /dev with terminals."""
    names = ["ipc", "uts", "pid", *([] if network else ["net"]), "mnt"]
    opened = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in names]
    owner = fcntl.ioctl(opened[-1], _NS_GET_USERNS)
    inner = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    same = os.fstat(owner).st_ino == os.fstat(inner).st_ino
    return [owner, *opened, *([] if same else [inner])]


def _process_namespaces(pid: int) -> tuple[int, int] | None:
    """The box's process namespace and ours, if this process may start children in the box's."""
    if os.geteuid() != 0:
        return None
    box, own = (os.open(f"/proc/{name}/ns/pid", os.O_RDONLY) for name in (pid, "self"))
    try:
        kernel.join_namespace(box)
        kernel.join_namespace(own)
    except OSError:  # root without the right to administer
        os.close(box)
        os.close(own)
        return None
    return box, own


def _last_words() -> str:
    try:
        with open(_LOG, "rb") as file:
            return file.read(_LOG_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
