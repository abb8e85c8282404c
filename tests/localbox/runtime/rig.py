"""Boxes for the tests of the runtimes, driven without a server."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from localbox.runtime.interface import (
    BoxHandle,
    BoxSpec,
    CommandResult,
    DetachedCommand,
    DetachedStatus,
    Limits,
    Runtime,
    RuntimeFault,
)
from localbox.runtime.supervisor import processes
from tests.waiting import eventually

T = TypeVar("T")

IS_ROOT = os.geteuid() == 0
UIDS = 200


def _first_uid() -> int:
    """Uids that no other test process uses at the same time, also where a container maps only 65,536."""
    _, _, length = Path("/proc/self/uid_map").read_text().split()[:3]
    start, blocks = (1_000_000, 100_000) if int(length) > 22_000_000 else (30_000, 150)
    return start + (os.getpid() % blocks) * UIDS


_OURS = range(_first_uid(), _first_uid() + UIDS)
_UIDS = itertools.cycle(_OURS)  # a box that had one of them is long gone when it comes again
_NUMBERS = itertools.count(1)


def call(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def running(text: str) -> list[int]:
    """Living processes with this text in their argument list; where boxes have uids, those of this process's boxes alone."""
    needle = text.encode()
    found = [pid for pid in processes.pids() if needle in arguments_of(pid) and processes.lives(pid)]
    return [pid for pid in found if not IS_ROOT or is_ours(pid)]


def is_ours(pid: int) -> bool:
    """Whether it has the uid of a box of this process, and not of one of another that runs the same test beside it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    return next(int(line.split()[1]) for line in lines if line.startswith("Uid:")) in _OURS


def arguments_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def memory_kib(pid: int, name: str) -> int:
    """A line of /proc/PID/status, such as VmHWM, the most memory it ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


class Box:
    """A box that is up, with calls that wait."""

    def __init__(self, runtime: Runtime, spec: BoxSpec, handle: BoxHandle) -> None:
        self.runtime = runtime
        self.spec = spec
        self.handle = handle

    @property
    def home(self) -> Path:
        return self.spec.root / "home"

    @property
    def pid(self) -> int:
        return self.handle.record.pid

    def run(self, command: str, *, cwd: str | None = None, seconds: float = 100.0) -> CommandResult:
        return call(self.handle.run(command, cwd=cwd, timeout_seconds=seconds))

    def output(self, command: str, **options: Any) -> str:
        """What a command that succeeds prints."""
        result = self.run(command, **options)
        assert result.exit_code == 0, result
        return result.stdout.decode().strip()

    def start(self, command: str, *, cwd: str | None = None) -> DetachedCommand:
        return call(self.handle.start_detached(command, cwd=cwd))

    def status(self, process_id: int, *, tail_bytes: int = 1 << 19) -> DetachedStatus:
        return call(self.handle.detached_status(process_id, tail_bytes=tail_bytes))

    def wait(self, process_id: int) -> DetachedStatus:
        eventually(lambda: self.status(process_id).status != "running")
        return self.status(process_id)

    def read(self, path: str) -> bytes:
        return call(self.handle.read_file(path))[1]

    def write(self, path: str, content: bytes) -> str:
        return call(self.handle.write_file(path, content))

    def stop(self) -> None:
        call(self.handle.stop())

    def refusal(self, work: Coroutine[Any, Any, Any]) -> str:
        """The code of the fault that this call must end with."""
        try:
            result = call(work)
        except RuntimeFault as fault:
            return fault.code
        raise AssertionError(f"it was not refused: {result}")


class Rig:
    """A state folder of its own with the boxes of one test."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.state = Path(tempfile.mkdtemp(prefix="localbox-test-"))
        self.state.chmod(0o711)
        (self.state / "boxes").mkdir(mode=0o711)
        self._specs: list[BoxSpec] = []

    def spec(
        self, *, env: dict[str, str] | None = None, limits: Limits | None = None, network: bool = True
    ) -> BoxSpec:
        box_id = f"bx-{os.getpid()}-{next(_NUMBERS)}"
        uid = next(_UIDS) if IS_ROOT else None
        root = self.state / "boxes" / box_id
        spec = BoxSpec(box_id, root, uid, env or {}, limits or Limits(), network)
        self._specs.append(spec)
        return spec

    def up(self, spec: BoxSpec | None = None, **options: Any) -> Box:
        spec = spec or self.spec(**options)
        return Box(self.runtime, spec, call(self.runtime.start(spec)))

    def close(self) -> None:
        """End every box of the test and delete what it made."""
        call(self.runtime.sweep(self._specs))
        for spec in self._specs:
            call(self.runtime.remove(spec))
        shutil.rmtree(self.state)
