"""Starting one command: a fork that becomes a process of the box and then the shell."""

from __future__ import annotations

import array  # noqa: F401 - socket imports it late, when the child no longer sees the standard library
import errno
import os
import signal
import socket

from . import shell
from .descriptors import arrange
from .fault import Fault
from .sandbox import Sandbox, limit_command, limits_of_commands, prepare_child
from .settings import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_START_SECONDS = 20.0  # a fork bomb slows the start of its neighbour in the same box; a hang must end
_MESSAGE = 1 << 16
_OUTER, _INNER, _LOG, _FAULT = (
    b"O",
    b"I",
    b"L",
    b"F",
)  # first byte of what a child says, with a text or a file


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
        program = _Program(sandbox)
        try:
            pid = _fork(sandbox)
            if pid == 0:
                _become_command(sandbox, order, program, script, theirs)
        finally:
            os.close(script)
            theirs.close()
        return _await_start(ours, pid)
    finally:
        ours.close()


class _Program:
    """What the child needs to become the shell, made before the fork."""

    __slots__ = ("arguments", "environment", "limits", "path")

    def __init__(self, sandbox: Sandbox) -> None:
        self.path = sandbox.shell
        self.arguments = shell.arguments(sandbox.shell)
        self.environment = sandbox.environment()
        self.limits = limits_of_commands(sandbox)


def _fork(sandbox: Sandbox) -> int:
    try:
        return sandbox.fork()
    except OSError as error:
        raise Fault("box_direct_failed", f"no further process could be started: {error.strerror}") from error


def _await_start(channel: socket.socket, child: int) -> Spawned:
    """Read what the child says until the shell has taken its place, which closes the channel."""
    channel.settimeout(_START_SECONDS)
    said: dict[bytes, str] = {_OUTER: str(child)}
    logs: list[int] = []
    try:
        while True:
            message, fds, _, _ = socket.recv_fds(channel, _MESSAGE, 2)
            logs += fds
            if not message:
                break
            said[message[:1]] = message[1:].decode("utf-8", "replace")
        return _started(said, logs)
    except OSError as error:
        os.kill(child, signal.SIGKILL)
        raise Fault("box_direct_failed", "the command did not start in time") from error


def _started(said: dict[bytes, str], logs: list[int]) -> Spawned:
    if _INNER in said and _FAULT not in said:
        inner_pid, cwd = said[_INNER].split(" ", 1)
        return Spawned(int(said[_OUTER]), int(inner_pid), cwd, logs)
    for fd in logs:
        os.close(fd)
    code, message = said.get(_FAULT, "box_direct_failed the command could not be started").split(" ", 1)
    raise Fault(code, message)


def _become_command(
    sandbox: Sandbox, order: Order, program: _Program, script: int, channel: socket.socket
) -> NoReturn:
    """In the child. Never returns, and never raises into the supervisor's code."""
    try:
        prepare_child()
        sandbox.enter()
        outside = sandbox.enter_processes()
        if outside is not None:
            _say(channel, _OUTER, str(outside))
            os._exit(0)
        os.setsid()
        cwd = _change_directory(sandbox, order.cwd)
        _make_logs(sandbox, order.log_paths, channel)
        _say(channel, _INNER, f"{os.getpid()} {cwd}")
        limit_command(sandbox, program.limits)
        nothing = os.open(os.devnull, os.O_RDONLY)
        arrange([nothing, order.out, order.err, script])
        os.execve(program.path, program.arguments, program.environment)  # noqa: S606 - the shell is what is started
    except Fault as fault:
        _say(channel, _FAULT, f"{fault.code} {fault.message}")
    except BaseException as error:
        _say(channel, _FAULT, f"box_direct_failed the command could not be started: {error}")
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
        socket.send_fds(channel, [_LOG], [log])
        os.close(log)


def _say(channel: socket.socket, kind: bytes, text: str) -> None:
    try:
        channel.send(kind + text.encode("utf-8", "replace"))
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
