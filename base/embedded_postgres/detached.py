"""A supervisor process that belongs to nobody: it outlives who started it, and ends with its server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from .errors import EmbeddedPostgresError
from .server import open_log

if TYPE_CHECKING:
    from .cluster import Cluster

CHECKOUT = Path(__file__).resolve().parents[2]
READY = "ready"
# What Python itself may need; no secret of the caller's stays in the environment of a process that outlives it.
PASSED_ON = ("PATH", "HOME", "LANG", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 30.0
HEALTHY_SECONDS = 60.0  # a server that ran this long is started again at once


class Stopped(BaseException):
    """Somebody asked the supervisor to end."""


def start_supervisor(cluster: Cluster, timeout: float) -> None:
    """Return when the server answers. Raises the supervisor's `EmbeddedPostgresError`."""
    source = str(cluster.binaries.folder)
    request = json.dumps(
        [str(cluster.layout.folder), cluster.max_connections, cluster.settings, source, timeout]
    )
    done = subprocess.run(
        [sys.executable, "-m", "base.embedded_postgres", request],
        cwd=CHECKOUT,
        env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return
    try:
        code, detail = json.loads(done.stdout)
    except ValueError:
        code, detail = (
            "start_failed",
            f"The supervisor of PostgreSQL did not start: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}",
        )
    raise EmbeddedPostgresError(code, detail)


def become_supervisor(cluster: Cluster, timeout: float) -> NoReturn:
    """In a process made for this: split off the supervisor, tell when it is ready, and end."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        status = 1
        try:
            os.close(reading)
            status = _supervise(cluster, timeout, writing)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as answers:
        answer = answers.read()
    if answer == READY:
        sys.exit(0)
    print(
        answer
        or json.dumps(
            ["start_failed", f"The supervisor of PostgreSQL ended; see {cluster.layout.supervisor_log}."]
        )
    )
    sys.exit(1)


def _supervise(cluster: Cluster, timeout: float, answers: int) -> int:
    os.setsid()
    for number in STOP_SIGNALS:
        signal.signal(number, _stop)
    try:
        cluster.start(timeout, detached=True)
        _leave_terminal(cluster)
        _answer(answers, READY)
        os.close(answers)
        restarts = Restarts(cluster)
        while cluster.owned and restarts.run_once():
            pass
    except EmbeddedPostgresError as error:
        cluster.close()
        _answer(
            answers, json.dumps([error.code, error.detail])
        )  # left open: it ends with this process, and nothing is left then
        return 1
    except Stopped:
        return 0
    finally:
        cluster.close()
    return 0


class Restarts:
    """Brings a server back for as long as its folder is there, at once or, if it fails again and again, ever later."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pause = 0.0

    def run_once(self) -> bool:
        """Wait for the end of the server and start it again. False if it was asked to end."""
        started = time.monotonic()
        if self._cluster.wait() == 0:
            return False
        if time.monotonic() - started > HEALTHY_SECONDS:
            self._pause = 0.0
        self._start_again()
        return True

    def _start_again(self) -> None:
        while self._cluster.owned:
            time.sleep(self._pause)
            self._pause = min(max(self._pause * 2, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
            try:
                self._cluster.start()
            except EmbeddedPostgresError as error:
                print(error.detail, file=sys.stderr, flush=True)
            else:
                return


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Once: the shutdown that follows is not interrupted."""
    for other in STOP_SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped


def _leave_terminal(cluster: Cluster) -> None:
    """Give back the caller's files and folder; what is printed from now on goes to the supervisor's log."""
    with open_log(cluster.layout.supervisor_log) as log, Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.chdir("/")


def _answer(descriptor: int, text: str) -> None:
    """Only the first answer counts: the reader is gone after it."""
    with suppress(OSError):
        os.write(descriptor, text.encode())
