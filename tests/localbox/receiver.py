"""A small HTTP server that takes webhook deliveries and answers as it is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Receiver:
    """Records every POST. `statuses` are given one after the other, the last one for ever; 0 never answers."""

    def __init__(
        self, statuses: Sequence[int] = (200,), *, tls: ssl.SSLContext | None = None, port: int = 0
    ) -> None:
        self.received: list[Received] = []
        self.released = threading.Event()
        self._statuses = list(statuses)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._scheme = "http" if tls is None else "https"

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.port}/hook?from=test"

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of_box(self, box_id: str) -> list[Received]:
        return [each for each in self.received if each.event["data"]["box"]["id"] == box_id]

    def events(self, box_id: str) -> list[str]:
        return [each.event["type"] for each in self.of_box(box_id)]

    def _next_status(self) -> int:
        return self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                status = receiver._next_status()
                if status == 0:
                    receiver.released.wait()
                    return
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"http://localhost:{receiver.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler
