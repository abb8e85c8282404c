"""Answers that a server on this machine gives, and calls to it."""

from __future__ import annotations

from collections.abc import Callable

from base import http
from base.http import call
from tests.fakes.wire import Connection, Request, WireServer

Serve = Callable[[Connection, Request], None]


def answering(raw: bytes, *, close: bool = False) -> Serve:
    def serve(connection: Connection, _request: Request) -> None:
        connection.write(raw)
        if close:
            connection.close()

    return serve


def get(server: WireServer, seconds: float = 5.0, **more: object) -> http.Reply:
    return call("GET", f"{server.url}/boxes", deadline_seconds=seconds, **more)  # type: ignore[arg-type]
