"""What every kind of sandbox does, and how a forked child becomes a process of the box."""

from __future__ import annotations

import os
import resource
import signal
from abc import ABC, abstractmethod

from . import kernel
from .settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .paths import View

_OPEN_FILES = (4096, 65536)  # soft, hard: programs that want more than the soft limit raise it themselves
_OOM_SCORE = b"500"  # out of memory, the kernel ends a box's process before the provider or the database
_NICENESS = 5  # a busy box must not starve the provider


class Sandbox(ABC):
    """A box's walls. `view` says where /home/user and /tmp are for a process that has entered."""

    view: View
    shell: str

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def start(self) -> None:
        """Bring the sandbox up; raises `Fault` with `start_failed`."""

    @abstractmethod
    def enter(self) -> None:
        """In a forked child: become the box's user, in the box's view of the files."""

    def fork(self) -> int:
        """Fork the child that is to become a command, as `os.fork` does."""
        return os.fork()

    def enter_processes(self) -> int | None:
        """In a forked child that has entered: go among the box's processes. Returns None in the process that is
        to become the command; in a process left outside, the command's pid as this side sees it."""
        return None

    def process_limit(self) -> int:
        """The value of RLIMIT_NPROC for the box's processes."""
        return self.settings.limits.processes

    def is_gone(self, pid: int) -> bool:
        """Whether the end of this child means that the sandbox itself has ended."""
        return False

    @abstractmethod
    def kill_all(self) -> bool:
        """SIGKILL every process of the box that is seen now; False once none is left."""

    def environment(self) -> dict[str, str]:
        """Of every command: a plain user's, then what the box was given, then what must not be changed."""
        home, tmp = self.view.home, self.view.tmp
        paths = f"{home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        usual = {"PATH": paths, "LANG": "C.UTF-8", "USER": "user", "LOGNAME": "user", "SHELL": self.shell}
        places = {"HOME": home, "TMPDIR": tmp}
        return {**usual, **places, **self.settings.env, "BOX_ID": self.settings.box_id}


def prepare_child() -> None:
    """First in a forked child, while it still is what the supervisor is.

    A child runs as little Python as it can: every object that it touches is a page of memory to be copied.
    """
    signal.set_wakeup_fd(-1)
    os.umask(0o022)
    try:
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, _OOM_SCORE)
        os.close(score)
    except OSError:
        return  # a kernel without it


def become(uid: int | None) -> None:
    """Drop to the box's own uid, for ever; as an ordinary user stay who we are."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    kernel.forbid_new_privileges()


def limits_of_commands(sandbox: Sandbox) -> list[tuple[int, tuple[int, int]]]:
    """What a command may use, as resource.setrlimit takes it.

    Memory is limited by RLIMIT_DATA, not by RLIMIT_AS: runtimes such as Node.js, Go and Java reserve far more
    address space than they ever use, and reserving is free.
    """
    limits = sandbox.settings.limits
    wanted = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_DATA, limits.memory_bytes),
    )
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (min(value, most) if most >= 0 else value for value in _OPEN_FILES)
    return [*(_limit(kind, value) for kind, value in wanted), (resource.RLIMIT_NOFILE, (soft, hard))]


def limit_command(sandbox: Sandbox, limits: list[tuple[int, tuple[int, int]]]) -> None:
    """Last before a command starts: here and not earlier, or its own start would be refused by its limits."""
    os.nice(_NICENESS)
    for kind, values in limits:
        resource.setrlimit(kind, values)
    resource.setrlimit(*_limit(resource.RLIMIT_NPROC, sandbox.process_limit()))


def _limit(kind: int, value: int) -> tuple[int, tuple[int, int]]:
    _, most = resource.getrlimit(kind)
    ceiling = value if most < 0 else min(value, most)
    return kind, (ceiling, ceiling)
