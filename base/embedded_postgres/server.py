"""One run of the server, as a child process of ours in the foreground.

A direct child can be reaped the moment it dies. (A server started by pg_ctl belongs to process 1; where that one does not
reap, the killed server stays a zombie and its data refuses to start again.)
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from . import launch, processes
from .account import Account
from .binaries import Binaries
from .errors import EmbeddedPostgresError
from .layout import PORT, Layout
from .lockfile import LockFile
from .postmaster import ENDINGS, read_pid_file

LOG_LIMIT_BYTES = 16 << 20
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def settings_of(layout: Layout, max_connections: int, extra: Mapping[str, str]) -> dict[str, str]:
    """What the server is started with. `extra` wins."""
    return {
        **DURABLE,
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": '"' + str(layout.run).replace('"', '""') + '"',
        "unix_socket_permissions": "0700",
        "cluster_name": layout.name,
        "max_connections": str(max_connections),
        "shared_buffers": "128MB",
        "max_parallel_workers_per_gather": "0",  # parallel queries need /dev/shm, which containers keep small
        "idle_in_transaction_session_timeout": "60s",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "logging_collector": "off",
        **extra,
    }


def command_of(account: Account, death_signal: signal.Signals, program: list[str]) -> list[str]:
    """`program`, to be run as `account` and to get `death_signal` when the thread that starts it ends."""
    numbers = [os.getpid(), account.uid, account.gid, int(death_signal)]
    return [sys.executable, "-I", "-S", str(Path(launch.__file__)), *map(str, numbers), *program]


class Server:
    """A started server process. `poll` reaps it."""

    def __init__(self, layout: Layout, process: subprocess.Popen[bytes], log_start: int) -> None:
        self._layout = layout
        self._process = process
        self._log_start = log_start

    @classmethod
    def launch(
        cls, layout: Layout, account: Account, binaries: Binaries, settings: Mapping[str, str], lock: LockFile
    ) -> Server:
        """Start it; `lock` is handed on to all its processes."""
        program = [binaries.program("postgres"), "-D", str(layout.data)]
        for name, value in settings.items():
            program += ["-c", f"{name}={value}"]
        with open_log(layout.log) as log:
            start = log.tell()
            process = subprocess.Popen(
                command_of(account, signal.SIGINT, program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(layout),
                cwd=layout.folder,
                start_new_session=True,  # a Ctrl-C in the terminal reaches the supervisor only, which ends the database last
                pass_fds=(lock.fileno(),),
            )
        return cls(layout, process, start)

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float | None) -> int:
        return self._process.wait(timeout)

    def wait_until_ready(self, seconds: float) -> None:
        """Raises `EmbeddedPostgresError` with the server's own reason if it ended, or if recovery takes too long."""
        if not processes.wait_until(lambda: self._is_ready() or self.poll() is not None, seconds):
            raise EmbeddedPostgresError(
                "start_timeout",
                f"PostgreSQL is not ready after {seconds:.0f} seconds; see {self._layout.log}.",
            )
        if self.poll() is not None:
            raise EmbeddedPostgresError(
                "start_failed", f"PostgreSQL did not start: {self._reason()} (log: {self._layout.log})"
            )

    def end(self) -> int:
        """Fast shutdown, then ever harder ones. Returns the exit status."""
        for signal_number, seconds in ENDINGS:
            if self._process.poll() is None:
                self._process.send_signal(signal_number)
            try:
                return self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
        raise EmbeddedPostgresError("will_not_stop", f"The server process {self.pid} does not end.")

    def _is_ready(self) -> bool:
        found = read_pid_file(self._layout.data)
        return found is not None and found.pid == self.pid and found.status == "ready"

    def _reason(self) -> str:
        """The last fatal line that this run wrote."""
        with self._layout.log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read()[-8192:].decode(errors="replace").splitlines()
        fatal = [line for line in lines if "FATAL:" in line or "PANIC:" in line or "error" in line.lower()]
        return (fatal or lines or ["it said nothing"])[-1].rpartition("FATAL:  ")[2]


def environment(layout: Layout) -> dict[str, str]:
    """Nothing of ours: no secret of the installation reaches the server's processes."""
    libraries = os.environ.get("LD_LIBRARY_PATH")  # some Pythons do not start without, and `launch` is Python
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C",
        "TZ": "UTC",
        "HOME": str(layout.folder),
        **({"LD_LIBRARY_PATH": libraries} if libraries else {}),
    }


def open_log(path: Path) -> io.FileIO:
    """For appending; a log that has grown large is kept once, as `.1`. A link in its place is refused."""
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = io.FileIO(os.open(path, flags, 0o600), "a")
    log.seek(0, os.SEEK_END)
    return log
