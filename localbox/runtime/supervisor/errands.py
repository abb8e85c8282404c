"""Short work that must be done as the box's user in the box's view: a forked child does it and answers once."""

from __future__ import annotations

import json
import os
import signal
import socket

from .fault import Fault
from .loop import READ, Loop
from .sandbox import Sandbox, prepare_child
from .wire import Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    Answer = tuple[Header, list[int]]  # with open files that the caller closes
    Work = Callable[[Sandbox], Answer]
    Done = Callable[[Header, list[int]], None]

_MESSAGE = 1 << 16
_MAX_FILES = 4
_SECONDS = 120.0  # writing a file of the largest size to a slow disk


def run_errand(loop: Loop, sandbox: Sandbox, work: Work, done: Done) -> None:
    """Fork, do `work`, and call `done` with its answer. A `Fault` of the work, or its death, is an answer too."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            done(_refusal("box_direct_failed", f"no further process could be started: {error.strerror}"), [])
            return
        if pid == 0:
            _work(sandbox, work, theirs)
    _Errand(loop, ours, pid, done)


class _Errand:
    """The supervisor's side: waits for the one message, without blocking the loop."""

    def __init__(self, loop: Loop, channel: socket.socket, pid: int, done: Done) -> None:
        self._loop, self._channel, self._done = loop, channel, done
        self._timer = loop.after(_SECONDS, lambda: os.kill(pid, signal.SIGKILL))
        loop.watch(channel.fileno(), READ, self._answered)

    def _answered(self) -> None:
        self._timer.cancel()
        self._loop.forget(self._channel.fileno())
        with self._channel:
            message, fds, _, _ = socket.recv_fds(self._channel, _MESSAGE, _MAX_FILES)
        header = json.loads(message) if message else _refusal("box_direct_failed", "the box did not answer")
        self._done(header, fds)


def _work(sandbox: Sandbox, work: Work, channel: socket.socket) -> NoReturn:
    try:
        prepare_child()
        sandbox.enter()
        header, fds = work(sandbox)
        socket.send_fds(channel, [json.dumps(header).encode()], fds)
    except Fault as fault:
        channel.send(json.dumps(_refusal(fault.code, fault.message)).encode())
    except BaseException as error:
        channel.send(json.dumps(_refusal("box_direct_failed", str(error))).encode())
    finally:
        os._exit(0)


def _refusal(code: str, message: str) -> Header:
    return {"code": code, "message": message}
