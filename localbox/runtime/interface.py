"""What the provider needs of a sandbox, and nothing more.

One `Runtime` per provider process, one `BoxHandle` per box that is up. The API server knows only this page; how a
box is kept apart (namespaces, or a uid and limits of its own) is the runtime's business.

A box is a folder (`home/`, `tmp/`, `run/`) and one detached supervisor process that listens on a unix socket
inside that folder. The supervisor owns every process of the box, does all file access as the box's uid, and
outlives the provider: a provider that was killed finds its boxes again by `adopt`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

HOME = "/home/user"  # what a client calls the box's work directory, whatever it is on the host


@dataclass(frozen=True)
class Limits:
    """Ceilings of one box. Sizes in bytes, times in seconds."""

    processes: int = 200
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    tmp_bytes: int = 1 << 30
    output_bytes: int = (
        1 << 20
    )  # kept of each stream of one synchronous command; the rest is drained and counted
    log_bytes: int = 1 << 30  # ceiling of the log file of a detached command


@dataclass(frozen=True)
class BoxSpec:
    """Everything a runtime needs to bring a box up. `env` is given to every command of the box."""

    box_id: str
    root: Path  # the box's own folder; created if missing, kept when the box stops (files survive a stop)
    uid: int | None  # the box's own uid when the provider is root, else None
    env: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    network: bool = True


@dataclass(frozen=True)
class SupervisorRecord:
    """What must be remembered to find a supervisor again after the provider was killed. JSON-safe."""

    pid: int
    start_time: int  # field 22 of /proc/PID/stat: with the pid it names one process for ever
    socket: str


@dataclass(frozen=True)
class CommandResult:
    """The end of a synchronous command. `exit_code` is None when it died by `signal` (a name such as SIGKILL)."""

    exit_code: int | None
    signal: str | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    stdout_truncated: bool
    stderr_truncated: bool
    started_at: float  # epoch seconds
    finished_at: float
    cwd: str


@dataclass(frozen=True)
class DetachedCommand:
    process_id: int  # per box, from 1 upwards, never reused
    pid: int  # as seen by later commands of the same box: `kill -0 PID` works
    log_path: str  # as seen inside the box
    err_path: str
    started_at: float
    cwd: str


@dataclass(frozen=True)
class DetachedStatus:
    process_id: int
    pid: int
    command: str
    status: Literal["running", "exited", "lost"]
    exit_code: int | None
    signal: str | None
    stdout: bytes  # the last `tail_bytes`
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    log_path: str
    err_path: str
    started_at: float
    finished_at: float | None
    cwd: str


class RuntimeFault(Exception):
    """A sandbox could not do what was asked. `code` is the provider's own error code for it.

    Of a box that is up: `invalid_command` (a zero byte, or no Unicode), `invalid_cwd`, `invalid_path`, `not_found`,
    `file_too_large`, `box_direct_failed`. Of a runtime: `start_failed`, `invalid_env`, `stop_failed`, `fork_failed`,
    `remove_failed`, `runtime_unavailable`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class BoxHandle(Protocol):
    """A box that is up. Every method raises `RuntimeFault`: `invalid_cwd`, `invalid_path`, `not_found`,
    `file_too_large`, `box_direct_failed` (the supervisor did not answer)."""

    record: SupervisorRecord

    async def run(self, command: str, *, cwd: str | None, timeout_seconds: float) -> CommandResult:
        """Run `bash -c command` (sh where there is no bash) to its end; its own process tree is killed on timeout.
        Returns shortly after the command's own end even if a background child still holds its stdout."""
        ...

    async def start_detached(self, command: str, *, cwd: str | None) -> DetachedCommand:
        """Start a command that outlives the request and the provider, its streams going to two log files."""
        ...

    async def detached_status(self, process_id: int, *, tail_bytes: int) -> DetachedStatus:
        """`not_found` for an id that this box never gave."""
        ...

    async def read_file(self, path: str) -> tuple[str, bytes]:
        """The resolved path as seen in the box, and the content. Outside HOME and /tmp, also through a symlink,
        is `invalid_path`."""
        ...

    async def write_file(self, path: str, content: bytes) -> str:
        """Write atomically as the box's user, parents made; returns the resolved path."""
        ...

    async def disk_bytes(self) -> int: ...

    async def stop(self) -> None:
        """End every process of the box, also double-forked and setsid ones; returns when none is left."""
        ...


class Runtime(Protocol):
    name: Literal["bwrap", "plain"]
    reason: str  # one sentence: why this one was chosen

    async def start(self, spec: BoxSpec) -> BoxHandle: ...

    async def adopt(self, spec: BoxSpec, record: SupervisorRecord) -> BoxHandle | None:
        """The handle of a supervisor of an earlier provider life, or None if it is not there any more."""
        ...

    async def sweep(self, specs: list[BoxSpec]) -> int:
        """End whatever is left of boxes that are not up any more; returns how many processes were ended."""
        ...

    async def copy_home(self, source: BoxSpec, target: BoxSpec) -> None:
        """Copy a box's files for a fork; sparse, owned by the target's uid. The source may be running."""
        ...

    async def remove(self, spec: BoxSpec) -> None:
        """Delete a box's folder."""
        ...
