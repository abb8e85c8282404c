"""Commands at the fake provider: answered by the test, or really run with bash in a folder per box."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from tests.fakes.world import FakeBox, Refusal

Responder = Callable[[FakeBox, str], "str | int | tuple[int, str] | Mapping[str, Any] | None"]
"""Given a box and a command: its stdout, its exit status, both, a whole JSON answer, or None for nothing printed.
A detached command that is answered with None goes on running until the test ends its process."""

MARK = "FAKE_PROVIDER_BOX"
"""An environment variable by which every process of a box is found, however it detached itself."""


@dataclass
class FakeProcess:
    """A detached command. The test may change any field."""

    process_id: int
    pid: int
    command: str
    status: str = "running"
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    handle: subprocess.Popen[bytes] | None = None
    folder: Path | None = None


class Commands:
    """Runs or pretends to run what is asked for."""

    def __init__(self) -> None:
        self.responder: Responder = lambda _box, _command: None
        self.executes = False
        self.processes: dict[tuple[str, int], FakeProcess] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._root: Path | None = None
        self._marker = f"{os.getpid()}-{id(self)}"

    def run(self, box: FakeBox, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one command, detached or not."""
        command = body.get("command")
        if not isinstance(command, str):
            raise Refusal(400, "invalid_json")
        if body.get("detached"):
            return self._started(self._detached(box, command))
        if self.executes:
            return self._executed(box, command, float(body.get("timeoutSeconds", 30)))
        return _finished(self.responder(box, command))

    def status(self, box: FakeBox, process_id: str, tail: int) -> dict[str, Any]:
        """The answer to a look at a detached command."""
        with self._lock:
            process = self.processes.get((box.id, int(process_id))) if process_id.isdecimal() else None
        if process is None:
            raise Refusal(404, "not_found")
        self._refresh(process)
        stdout, stderr = process.stdout.encode(), process.stderr.encode()
        return {
            "ok": True,
            "success": process.exit_code == 0,
            "type": "command.status",
            "processId": process.process_id,
            "pid": process.pid,
            "status": process.status,
            "running": process.status == "running",
            "exitCode": process.exit_code,
            "stdout": stdout[-tail:].decode("utf-8", "replace"),
            "stderr": stderr[-tail:].decode("utf-8", "replace"),
            "stdoutTruncated": len(stdout) > tail,
            "stderrTruncated": len(stderr) > tail,
        }

    def home(self, box: FakeBox) -> Path:
        """The folder in which a box's commands really run."""
        with self._lock:
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="fake-provider-"))
        folder = self._root / box.id
        folder.mkdir(exist_ok=True)
        return folder

    def end(self, box: FakeBox) -> None:
        """Kill every process of a box and everything that it left behind."""
        if self.executes:
            self._kill_marked(f"{self._marker}-{box.id}")

    def close(self) -> None:
        """Kill everything and remove the folders."""
        if self._root is not None:
            self._kill_marked(self._marker)
            shutil.rmtree(self._root, ignore_errors=True)
        for process in self.processes.values():
            if process.handle is not None:
                process.handle.wait(10)

    def _detached(self, box: FakeBox, command: str) -> FakeProcess:
        number = next(self._numbers)
        process = FakeProcess(number, 10_000 + number, command)
        if self.executes:
            process.folder = self.home(box) / f".process-{number}"
            process.folder.mkdir()
            with (process.folder / "stdout").open("wb") as out, (process.folder / "stderr").open("wb") as err:
                process.handle = self._popen(box, command, stdout=out, stderr=err)
            process.pid = process.handle.pid
        else:
            _settle(process, self.responder(box, command))
        with self._lock:
            self.processes[box.id, number] = process
        return process

    def _refresh(self, process: FakeProcess) -> None:
        if process.handle is None or process.folder is None:
            return
        code = process.handle.poll()  # before its output is read: after its end there is no more of it
        process.stdout = (process.folder / "stdout").read_text("utf-8", "replace")
        process.stderr = (process.folder / "stderr").read_text("utf-8", "replace")
        if code is not None and process.status == "running":
            process.status, process.exit_code = "exited", code if code >= 0 else 128 - code

    def _executed(self, box: FakeBox, command: str, seconds: float) -> dict[str, Any]:
        # Into files, not pipes: the call ends with the shell, also where a child keeps the outputs open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self._popen(box, command, stdout=out, stderr=err)
            timed_out = False
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                timed_out = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            stdout, stderr = (_text_of(stream) for stream in (out, err))
        code = (
            143 if timed_out else process.returncode if process.returncode >= 0 else 128 - process.returncode
        )
        return {**_finished((code, stdout)), "stderr": stderr, "timedOut": timed_out}

    def _popen(self, box: FakeBox, command: str, **streams: Any) -> subprocess.Popen[bytes]:
        home = self.home(box)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), MARK: f"{self._marker}-{box.id}", **box.env}
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=home,
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **streams,
        )

    def _kill_marked(self, marker: str) -> None:
        while marked := [process for process in psutil.process_iter() if _is_marked(process, marker)]:
            for process in marked:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(0.01)  # not psutil's wait: it would take the exit status away from Popen

    @staticmethod
    def _started(process: FakeProcess) -> dict[str, Any]:
        return {
            "ok": True,
            "success": True,
            "type": "command.started",
            "processId": process.process_id,
            "pid": process.pid,
            "command": process.command,
            "startedAt": "2026-01-01T00:00:00Z",
        }


def _finished(said: Any) -> dict[str, Any]:
    if isinstance(said, Mapping):
        return dict(said)
    code, stdout = _code_and_output(said)
    return {
        "ok": True,
        "success": code == 0,
        "type": "command.finished",
        "exitCode": code,
        "signal": None,
        "stdout": stdout,
        "stderr": "",
        "timedOut": False,
        "stdoutTruncated": False,
        "stderrTruncated": False,
    }


def _settle(process: FakeProcess, said: Any) -> None:
    if said is not None:
        process.exit_code, process.stdout = _code_and_output(said)
        process.status = "exited"


def _code_and_output(said: Any) -> tuple[int, str]:
    if isinstance(said, tuple):
        return said[0], said[1]
    return (said, "") if isinstance(said, int) else (0, said or "")


def _text_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")


def _is_marked(process: psutil.Process, marker: str) -> bool:
    try:
        mark = process.environ().get(MARK, "")
        return process.status() != psutil.STATUS_ZOMBIE and (mark == marker or mark.startswith(f"{marker}-"))
    except psutil.Error:
        return False
