"""A receiver of webhooks over real HTTP, that answers as it is told and checks signatures with the library."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass(frozen=True)
class Reply:
    """`hang`: never answers. `drip`: a byte of an endless head at a time. `size`: bytes of the body."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    size: int = 0
    hang: bool = False
    drip: bool = False


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> dict[str, Any]:
        """The body, if it is ours. Raises WebhookVerificationError."""
        return dict(Webhook(secret).verify(self.body, self.headers))


class Receiver:
    """`replies` are given one after the other, the last one for ever."""

    def __init__(self, replies: Sequence[Reply] = (Reply(),), tls: ssl.SSLContext | None = None) -> None:
        self.replies = list(replies)
        self.received: list[Received] = []
        self.sent_bytes = 0
        self._lock, self._released = threading.Lock(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.port = self._server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answers(self, *replies: Reply) -> None:
        with self._lock:
            self.replies = list(replies)

    def _next(self, received: Received) -> Reply:
        with self._lock:
            self.received.append(received)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = receiver._next(Received(self.path, headers, body))
                if reply.hang:
                    receiver._released.wait()
                    return
                try:
                    self._answer(reply)
                except OSError:
                    self.close_connection = True

            def do_GET(self) -> None:
                receiver._next(Received(self.path, {}, b"GET"))
                self.send_response(200)
                self.end_headers()

            def _answer(self, reply: Reply) -> None:
                if reply.drip:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                    while not receiver._released.wait(0.05):
                        self.wfile.write(b"x")
                    return
                self.send_response(reply.status)
                for name, value in ({"Content-Length": str(reply.size)} | reply.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                for _ in range(reply.size // 4096):
                    self.wfile.write(b"x" * 4096)
                    receiver.sent_bytes += 4096

            def log_message(self, format: str, *arguments: object) -> None:
                """Nothing on the test's output."""

        return Handler
