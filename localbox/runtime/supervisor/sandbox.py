"""What every kind of sandbox does, and how a forked child becomes a process of the box."""

from __future__ import annotations

import os
import resource
import signal

from . import kernel
from .settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .paths import View

_OPEN_FILES = (4096, 65536)  # soft, hard: programs that want more than the soft limit raise it themselves
_OOM_SCORE = b"500"  # out of memory, the kernel ends a box's process before the provider or the database
_NICENESS = 5  # a busy box must not starve the provider


class Sandbox:
    """A box's walls. `view` says where /home/user and /tmp are for a process that has entered."""

    view: View
    shell: str

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def start(self) -> None:
        """Bring the sandbox up; raises `Fault` with `start_failed`."""

    def enter(self) -> None:
        """In a forked child: become the box's user, in the box's view of the files."""
        raise NotImplementedError

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

    def kill_all(self) -> bool:
        """SIGKILL every process of the box that is seen now; False once none is left."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Of every command: a plain user's, then what the box was given, then what must not be changed."""
        home, tmp = self.view.home, self.view.tmp
        paths = f"{home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        usual = {"PATH": paths, "LANG": "C.UTF-8", "USER": "user", "LOGNAME": "user", "SHELL": self.shell}
        places = {"HOME": home, "TMPDIR": tmp}
        return {**usual, **places, **self.settings.env, "BOX_ID": self.settings.box_id}


def prepare_child() -> None:
    """First in a forked child, while it still is what the supervisor is."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores the last two, and ignoring is inherited
    os.umask(0o022)
    try:
        with open("/proc/self/oom_score_adj", "wb") as file:
            file.write(_OOM_SCORE)
    except OSError:
        return  # a kernel without it


def become(uid: int | None) -> None:
    """Drop to the box's own uid, for ever; as an ordinary user stay who we are."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    kernel.forbid_new_privileges()


def limit_command(sandbox: Sandbox) -> None:
    """Last before a command starts: here and not earlier, or its own start would be refused by its limits.

    Memory is limited by RLIMIT_DATA, not by RLIMIT_AS: runtimes such as Node.js, Go and Java reserve far more
    address space than they ever use, and reserving is free.
    """
    limits = sandbox.settings.limits
    os.nice(_NICENESS)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_DATA, limits.memory_bytes)
    _limit(resource.RLIMIT_NPROC, sandbox.process_limit())
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (min(value, most) if most >= 0 else value for value in _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    ceiling = value if most < 0 else min(value, most)
    resource.setrlimit(kind, (ceiling, ceiling))
