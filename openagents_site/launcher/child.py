"""One supervised process, the leader of a session of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from base.embedded_postgres.account import Account
from base.embedded_postgres.processes import wait_until
from base.embedded_postgres.server import command_of

from . import records
from .identity import MARK, Group, Identity, living_members

GROUP_END_SECONDS = 3.0


class Process(Protocol):
    """What the supervisor needs of a process, or of something that acts like one."""

    def start(self) -> int | None:
        """Start it. A descriptor that its output can be read from, if it has one. Raises OSError or a coded error."""

    def end(self) -> str | None:
        """None while it runs; else how it ended, said once: everything of it is gone then."""

    def ask_to_end(self) -> None:
        """Ask it to end in good order."""

    def kill(self) -> None:
        """End it and everything in its group now."""

    @property
    def pid(self) -> int | None:
        """Of its main process, while it runs."""


@dataclass(frozen=True)
class Place:
    """Where a supervisor's processes run and are recorded. `mark` names this start of the supervisor."""

    checkout: Path
    run_folder: Path
    mark: str


class Child:
    """A command of the Procfile. `dies_by`: the signal it gets from the kernel if the supervisor is killed."""

    def __init__(
        self,
        name: str,
        command: str,
        environment: Mapping[str, str],
        place: Place,
        dies_by: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self._command = command
        self._place = place
        self._environment = {**environment, MARK: place.mark}
        self._dies_by = dies_by
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> int:
        reader, writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                command_of(
                    Account.of_uid(os.geteuid()), self._dies_by, ["/bin/sh", "-c", f"exec {self._command}"]
                ),
                cwd=self._place.checkout,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
            )
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self._record(self._process.pid)
        return reader

    def end(self) -> str | None:
        if self._process is None or not _has_ended(self._process.pid):
            return None
        self._end_group(self._process.pid)
        status = self._process.wait()
        self._process = None
        records.remove(self._place.run_folder, self.name)
        return (
            f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        )

    def ask_to_end(self) -> None:
        """SIGTERM to the main process alone: a scheduler whose whole group gets it never ends."""
        if self._process is not None and not _has_ended(self._process.pid):
            os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _record(self, pid: int) -> None:
        identity = Identity.of(pid)
        if identity is not None:  # else it has ended already, which `end` will find
            records.write(self._place.run_folder, self.name, Group(identity, self._place.mark))

    def _end_group(self, group: int) -> None:
        """The leader is a zombie still, so its number cannot have become that of another group."""
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
        wait_until(lambda: not living_members(group), GROUP_END_SECONDS)


def _has_ended(pid: int) -> bool:
    """Whether our child has ended; it stays a zombie."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
