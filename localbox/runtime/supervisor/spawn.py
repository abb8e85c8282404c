"""Starting one command: a fork that becomes a process of the box and then the shell."""

from __future__ import annotations

import array  # noqa: F401 - socket imports it late, when the child no longer sees the standard library
import errno
import json
import os
import signal
import socket

from . import shell
from .descriptors import arrange
from .fault import Fault
from .sandbox import Sandbox, limit_command, prepare_child
from .settings import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_START_SECONDS = 20.0  # a fork bomb slows the start of its neighbour in the same box; a hang must end
_MESSAGE = 1 << 16


class Spawned:
    """A command that runs. `pid` is what the supervisor sees, `inner_pid` what the box's own processes see."""

    __slots__ = ("cwd", "inner_pid", "logs", "pid")

    def __init__(self, pid: int, inner_pid: int, cwd: str, logs: list[int]) -> None:
        self.pid = pid
        self.inner_pid = inner_pid
        self.cwd = cwd
        self.logs = logs


class Order:
    """What to run, where, and where its streams go. With `log_paths`, those files are made in the box."""

    __slots__ = ("cwd", "err", "log_paths", "out", "text")

    def __init__(self, text: bytes, cwd: str | None, out: int, err: int, log_paths: list[str]) -> None:
        self.text = text
        self.cwd = cwd
        self.out = out
        self.err = err
        self.log_paths = log_paths


def spawn(sandbox: Sandbox, order: Order) -> Spawned:
    """Start the command. Raises `Fault`: `invalid_cwd`, or `box_direct_failed` if it could not be started."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        script = shell.script(order.text)
        try:
            pid = _fork()
            if pid == 0:
                _become_command(sandbox, order, script, theirs)
        finally:
            os.close(script)
            theirs.close()
        return _await_start(ours, pid)
    finally:
        ours.close()


def _fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise Fault("box_direct_failed", f"no further process could be started: {error.strerror}") from error


def _await_start(channel: socket.socket, child: int) -> Spawned:
    """Read what the child says until the shell has taken its place, which closes the channel."""
    channel.settimeout(_START_SECONDS)
    said: dict[str, object] = {"pid": child}
    logs: list[int] = []
    try:
        while True:
            message, fds, _, _ = socket.recv_fds(channel, _MESSAGE, 2)
            logs += fds
            if not message:
                break
            said.update(json.loads(message))
        return _started(said, logs)
    except OSError as error:
        os.kill(child, signal.SIGKILL)
        raise Fault("box_direct_failed", "the command did not start in time") from error


def _started(said: dict[str, object], logs: list[int]) -> Spawned:
    if "inner_pid" in said and "code" not in said:
        return Spawned(int(str(said["pid"])), int(str(said["inner_pid"])), str(said["cwd"]), logs)
    for fd in logs:
        os.close(fd)
    unknown = "the command could not be started"
    raise Fault(str(said.get("code", "box_direct_failed")), str(said.get("message", unknown)))


def _become_command(sandbox: Sandbox, order: Order, script: int, channel: socket.socket) -> NoReturn:
    """In the child. Never returns, and never raises into the supervisor's code."""
    try:
        prepare_child()
        sandbox.enter()
        outside = sandbox.enter_processes()
        if outside is not None:
            _say(channel, {"pid": outside})
            os._exit(0)
        os.setsid()
        environment = sandbox.environment()
        cwd = _change_directory(sandbox, order.cwd)
        _make_logs(sandbox, order.log_paths, channel)
        _say(channel, {"inner_pid": os.getpid(), "cwd": cwd})
        limit_command(sandbox)
        nothing = os.open(os.devnull, os.O_RDONLY)
        arrange([nothing, order.out, order.err, script])
        os.execve(sandbox.shell, shell.arguments(sandbox.shell), environment)  # noqa: S606 - the shell is what is started
    except Fault as fault:
        _say(channel, {"code": fault.code, "message": fault.message})
    except BaseException as error:
        _say(channel, {"code": "box_direct_failed", "message": f"the command could not be started: {error}"})
    finally:
        os._exit(127)


def _change_directory(sandbox: Sandbox, cwd: str | None) -> str:
    try:
        path = sandbox.view.resolve(cwd or HOME)
        os.chdir(sandbox.view.real(path))
    except Fault as fault:
        raise Fault("invalid_cwd", fault.message) from fault
    except OSError as error:
        raise Fault("invalid_cwd", f"{cwd}: {error.strerror}") from error
    return path


def _make_logs(sandbox: Sandbox, paths: list[str], channel: socket.socket) -> None:
    for path in paths:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(path, flags, 0o644)
        socket.send_fds(channel, [b"{}"], [log])
        os.close(log)


def _say(channel: socket.socket, message: dict[str, object]) -> None:
    try:
        channel.send(json.dumps(message).encode())
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
