"""An HTTP server that speaks the Responses API as a test tells it to, byte for byte."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


class ModelServer:
    """Answers each request with the next of `answers`. `bodies` and `headers` are what it was asked with."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                outer.headers.append({key.lower(): value for key, value in self.headers.items()})
                outer.answers.pop(0)(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def events(*told: dict[str, Any], then: Callable[[], Any] | None = None) -> Answer:
    """A stream of these events; then `then()` before it ends."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for event in told:
            text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            handler.wfile.write(text.encode())
            handler.wfile.flush()
        if then is not None:
            then()

    return answer


def raw(data: bytes) -> Answer:
    """A stream of these bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def status(code: int, error: dict[str, Any] | None = None, **headers: str) -> Answer:
    """An answer with this status."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps({"error": error or {}}).encode()
        handler.send_response(code)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


CREATED: dict[str, Any] = {"type": "response.created", "response": {"id": "resp-1", "status": "in_progress"}}
USAGE = {
    "input_tokens": 36,
    "input_tokens_details": {"cached_tokens": 6},
    "output_tokens": 87,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 123,
}


def completed(usage: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "response.completed",
        "response": {"id": "resp-1", "status": "completed", "usage": usage or USAGE},
    }


def text(delta: str) -> dict[str, Any]:
    return {
        "type": "response.output_text.delta",
        "item_id": "msg-1",
        "output_index": 0,
        "content_index": 0,
        "delta": delta,
    }


def item_done(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


def call(name: str, arguments: str, call_id: str = "call-1") -> dict[str, Any]:
    return item_done(
        {
            "type": "function_call",
            "id": "fc-1",
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
    )
