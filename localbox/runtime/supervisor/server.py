"""The supervisor's socket: one request a connection, one answer, then the end."""

from __future__ import annotations

import os
import socket

from .loop import READ, WRITE, Loop
from .wire import BrokenFrameError, Decoder, Header, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Handle = Callable[["Request"], None]

_CHUNK = 1 << 16
_MAX_FILES = 4
_WAITING = 512


class Request:
    """One question. Its asker may be gone when the answer is ready; that is nobody's trouble."""

    def __init__(self, connection: Connection, header: Header, body: bytes, fds: list[int]) -> None:
        self.header = header
        self.body = body
        self.fds = fds
        self._connection = connection

    def reply(self, header: Header, body: bytes = b"", fds: list[int] | None = None) -> None:
        """Answer, and close the files that travel with the answer."""
        self._connection.answer(encode(header, body), fds or [])
        for fd in [*self.fds, *(fds or [])]:
            os.close(fd)
        self.fds = []

    def refuse(self, code: str, message: str) -> None:
        self.reply({"code": code, "message": message})


class Connection:
    """Receives one frame, hands it over, sends one frame."""

    def __init__(self, loop: Loop, peer: socket.socket, handle: Handle) -> None:
        self._loop, self._peer, self._handle = loop, peer, handle
        self._decoder = Decoder()
        self._fds: list[int] = []
        self._out = b""
        self._open = True
        self._asked = False
        peer.setblocking(False)
        loop.watch(peer.fileno(), READ, self._receive)

    def answer(self, data: bytes, fds: list[int]) -> None:
        if not self._open:
            return
        try:
            sent = socket.send_fds(self._peer, [data[:_CHUNK]], fds)
        except OSError:
            self._close()
            return
        self._out = data[sent:]
        self._send()

    def _receive(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._peer, _CHUNK, _MAX_FILES)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        self._fds += fds
        if not data:
            self._close()
            return
        try:
            frame = None if self._asked else self._decoder.feed(data)
        except BrokenFrameError:
            self._close()
            return
        if frame is not None:
            self._asked = True
            fds, self._fds = self._fds, []
            self._handle(Request(self, *frame, fds))

    def _send(self) -> None:
        try:
            while self._out:
                self._out = self._out[self._peer.send(self._out[: _CHUNK * 4]) :]
        except BlockingIOError:
            self._loop.watch(self._peer.fileno(), WRITE, self._send)
            return
        except OSError:
            self._out = b""
        self._close()

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.forget(self._peer.fileno())
            self._peer.close()
            for fd in self._fds:
                os.close(fd)


def listen(loop: Loop, path: str, handle: Handle) -> socket.socket:
    """Serve requests on a unix socket at `path` (its folder decides who may connect)."""
    if os.path.lexists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(_WAITING)
    listener.setblocking(False)

    def accept() -> None:
        try:
            peer, _ = listener.accept()
        except BlockingIOError:
            return
        Connection(loop, peer, handle)

    loop.watch(listener.fileno(), READ, accept)
    return listener
