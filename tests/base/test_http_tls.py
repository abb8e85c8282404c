"""Calls over TLS: whom they trust, and their deadlines."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from base import http
from base.http import DeadlineExceeded, TransportFailure, call
from tests.base.wire_calls import Serve, answering, get
from tests.certificates import Certificate, certificate_in
from tests.fakes.wire import Connection, Request, WireServer, payload


@pytest.fixture(autouse=True)
def fresh_connections() -> Iterator[None]:
    yield
    http.close_connections()


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return certificate_in(tmp_path)


@contextlib.contextmanager
def serving_tls(serve: Serve, certificate: Certificate) -> Iterator[WireServer]:
    with WireServer(serve, tls=certificate.for_a_server()) as server:
        yield server


def test_over_tls_a_stranger_is_refused_and_an_added_authority_is_trusted(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_tls(answering(payload(200, b"private")), certificate) as server:
        with pytest.raises(TransportFailure):
            get(server)

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
        monkeypatch.setattr(http, "_context", None)
        http.close_connections()
        assert [get(server).body for _ in range(3)] == [b"private"] * 3


def test_over_tls_a_drip_is_cut_at_the_deadline(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(connection: Connection, _request: Request) -> None:
        connection.write(payload(200, b"", {"Content-Length": "1000"}))
        connection.drip(b"x" * 1000, 0.02)

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    monkeypatch.setattr(http, "_context", None)
    with serving_tls(serve, certificate) as server, pytest.raises(DeadlineExceeded):
        get(server, seconds=0.5)


def test_over_tls_a_silent_handshake_is_cut_at_the_deadline() -> None:
    with (
        contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener,
        pytest.raises(DeadlineExceeded),
    ):
        call("GET", f"https://127.0.0.1:{listener.getsockname()[1]}/", deadline_seconds=0.3)
