"""A small HTTP server over real sockets whose every byte a test decides.

It speaks just enough HTTP/1.1 to serve keep-alive clients, and lets whoever serves a request answer late, in part, byte
by byte, twice, or not at all. One thread per connection; `stop` ends them all.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """The decoded body; None without one. Raises ValueError for a body that is not JSON."""
        return json.loads(self.body) if self.body else None


class Connection:
    """The server's side of one connection."""

    def __init__(self, sock: socket.socket, ending: threading.Event) -> None:
        self.sock = sock
        self.ending = ending
        self._unread = b""

    def read(self) -> Request | None:
        """The next request; None when the client is gone."""
        while b"\r\n\r\n" not in self._unread:
            if not self._receive():
                return None
        head, self._unread = self._unread.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers.get("content-length") or 0)
        while len(self._unread) < length:
            if not self._receive():
                return None
        body, self._unread = self._unread[:length], self._unread[length:]
        parts = urlsplit(target)
        return Request(method, target, headers, body, parts.path, dict(parse_qsl(parts.query)))

    def write(self, payload: bytes) -> None:
        self.sock.sendall(payload)

    def drip(self, payload: bytes, seconds_per_byte: float) -> None:
        """Send byte by byte, until the client is gone or the server ends."""
        for position in range(len(payload)):
            self.write(payload[position : position + 1])
            if self.pause(seconds_per_byte):
                return

    def pause(self, seconds: float) -> bool:
        """Wait; True if the server is ending, so that nobody waits for a sleeping handler."""
        return self.ending.wait(seconds) if seconds > 0 else self.ending.is_set()

    def close(self, *, reset: bool = False) -> None:
        """End the connection: with a FIN, or with a reset as a crashed peer's host sends it."""
        with contextlib.suppress(OSError):
            if reset:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def _receive(self) -> bool:
        received = self.sock.recv(65536)
        self._unread += received
        return bool(received)


def payload(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole response as bytes. A header given with an empty value is left out."""
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    lines = [f"{name}: {value}" for name, value in sent.items() if value]
    return "\r\n".join([f"HTTP/1.1 {status} {phrase}", *lines, "", ""]).encode("latin-1") + body


class WireServer:
    """Serves on a free loopback port: `serve(connection, request)` answers one request; what it closes is over.

    Used as a context manager. `accepted` counts the connections.
    """

    def __init__(
        self, serve: Callable[[Connection, Request], None], tls: ssl.SSLContext | None = None
    ) -> None:
        self._serve = serve
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.ending = threading.Event()
        self.accepted = 0

    @property
    def port(self) -> int:
        port: int = self._port
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> WireServer:
        self._port = self._listener.getsockname()[1]
        self._spawn(self._accept)
        return self

    def stop(self) -> None:
        self.ending.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for thread in list(self._threads):
            thread.join(10)

    def drop_connections(self) -> None:
        """End every open connection now."""
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> WireServer:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _spawn(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True, name="fake-wire")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.ending.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self.accepted += 1
            self._spawn(self._converse, sock)

    def _converse(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError), contextlib.ExitStack() as leaving:
            leaving.callback(sock.close)
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
                leaving.callback(sock.close)
            with self._lock:
                self._open.add(sock)
            leaving.callback(self._forget, sock)
            connection = Connection(sock, self.ending)
            while not self.ending.is_set() and (request := connection.read()) is not None:
                self._serve(connection, request)

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
