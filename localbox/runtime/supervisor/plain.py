"""The sandbox that works everywhere: a home, a temporary folder, limits and, under root, a uid of its own.

Under root, other boxes and the provider are out of reach as those of another user are. For an ordinary user it is
no security boundary: every box runs as that user.
"""

from __future__ import annotations

import os
import signal

from . import kernel, processes, shell
from .fault import Fault
from .paths import View
from .sandbox import Sandbox, become
from .settings import Settings


class PlainSandbox(Sandbox):
    """Needs nothing of the host but its users and limits."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.view = View(settings.home, settings.tmp)
        self.shell = shell.find()
        self._supervisor = os.getpid()

    def start(self) -> None:
        if not self.settings.network:
            raise Fault("start_failed", "the plain runtime cannot cut a box off the network; bwrap can")
        kernel.become_subreaper()

    def enter(self) -> None:
        become(self.settings.uid)

    def process_limit(self) -> int:
        """The kernel counts per user. Where the user is not the box's own, what else it runs comes on top."""
        own = self.settings.limits.processes
        return own if self.settings.uid is not None else own + self._tasks_of_others()

    def _tasks_of_others(self) -> int:
        ours = processes.descendants(self._supervisor, processes.table())
        return processes.tasks_of_user(os.getuid()) - sum(processes.tasks(pid) for pid in ours)

    def kill_all(self) -> bool:
        if self.settings.uid is not None:
            return _kill_user(self.settings.uid)
        members = processes.descendants(os.getpid(), processes.table())
        processes.kill(members)
        return bool(members)


def _kill_user(uid: int) -> bool:
    """One signal to everything of this uid: atomic, so no fork escapes it."""
    if not processes.of_uid(uid):
        return False
    child = os.fork()
    if child == 0:
        try:
            become(uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return True
