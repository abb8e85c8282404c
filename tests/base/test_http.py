"""Calls over real sockets: deadlines, bounds, broken answers, and many threads."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
import responses

from base import http, http_transport
from base.http import BodyTooLarge, CallFailed, DeadlineExceeded, TransportFailure, call
from tests.base.wire_calls import Serve, answering, get
from tests.fakes.wire import Connection, Request, WireServer, payload


@pytest.fixture(autouse=True)
def fresh_connections() -> Iterator[None]:
    yield
    http.close_connections()


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[WireServer]:
    with WireServer(serve) as server:
        yield server


def test_it_answers_status_headers_and_body() -> None:
    with serving(answering(payload(418, b"tea", {"Retry-After": "7"}))) as server:
        reply = get(server)

    assert (reply.status, reply.body, reply.headers["retry-after"]) == (418, b"tea", "7")


def test_it_sends_equal_values_as_equal_bytes() -> None:
    seen: list[Request] = []

    def serve(connection: Connection, request: Request) -> None:
        seen.append(request)
        connection.write(payload(200, b"{}"))

    with serving(serve) as server:
        call("POST", server.url, deadline_seconds=5, json={"b": 1, "a": "é"}, params={"state": "ready,idle"})
        call("POST", server.url, deadline_seconds=5, json={"a": "é", "b": 1})

    assert seen[0].body == seen[1].body == b'{"a":"\\u00e9","b":1}'
    assert seen[0].headers["content-type"] == "application/json"
    assert seen[0].target == "/?state=ready%2Cidle"


def test_it_uses_a_connection_again() -> None:
    with serving(answering(payload(200, b"{}"))) as server:
        for _ in range(5):
            get(server)

        assert server.accepted == 1


def test_it_does_not_use_a_connection_that_idled_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "IDLE_SECONDS", 0.0)
    with serving(answering(payload(200, b"{}"))) as server:
        for _ in range(3):
            get(server)

        assert server.accepted == 3


def test_a_second_answer_on_the_same_connection_is_never_taken_for_the_next_one() -> None:
    served = iter(range(100))
    sent = threading.Event()

    def serve(connection: Connection, _request: Request) -> None:
        number = next(served)
        connection.write(payload(200, b'{"n":%d}' % number) * (2 if number == 0 else 1))
        sent.set()

    with serving(serve) as server:
        answers = [json.loads(get(server).body)["n"] for _ in range(3)]

    assert answers == [0, 1, 2]


def test_a_body_that_drips_is_cut_at_the_deadline() -> None:
    def serve(connection: Connection, _request: Request) -> None:
        connection.write(payload(200, b"", {"Content-Length": "1000"}))
        connection.drip(b"x" * 1000, 0.02)

    with serving(serve) as server, pytest.raises(DeadlineExceeded):
        get(server, seconds=0.3)


def test_a_head_that_drips_is_cut_at_the_deadline() -> None:
    def serve(connection: Connection, _request: Request) -> None:
        connection.drip(b"HTTP/1.1 200 OK\r\n" + b"X-Header: x\r\n" * 50, 0.02)

    with serving(serve) as server, pytest.raises(DeadlineExceeded):
        get(server, seconds=0.3)


def test_a_flood_without_an_end_is_cut() -> None:
    def serve(connection: Connection, _request: Request) -> None:
        while not connection.pause(0):
            connection.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    with serving(serve) as server, pytest.raises(DeadlineExceeded):
        get(server, seconds=0.3)


def test_a_server_that_accepts_and_says_nothing_is_cut() -> None:
    with (
        serving(lambda connection, _request: connection.ending.wait() and None) as server,
        pytest.raises(DeadlineExceeded),
    ):
        get(server, seconds=0.2)


def test_a_server_that_does_not_read_a_large_request_is_cut() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with contextlib.closing(listener), pytest.raises(DeadlineExceeded):
        call("POST", url, deadline_seconds=0.3, body=b"x" * (64 << 20))


def test_a_deadline_that_has_passed_makes_no_wait() -> None:
    with serving(answering(payload(200, b"{}"))) as server, pytest.raises(DeadlineExceeded):
        get(server, seconds=0.0)


def test_the_connection_after_a_cut_call_is_a_new_one() -> None:
    def serve(connection: Connection, request: Request) -> None:
        if request.path == "/cut":
            connection.write(payload(200, b"late", {"Content-Length": "400"}))
            connection.ending.wait()
        connection.write(payload(200, b"good"))

    with serving(serve) as server:
        with pytest.raises(DeadlineExceeded):
            call("GET", f"{server.url}/cut", deadline_seconds=0.2)
        assert get(server).body == b"good"


def test_it_says_when_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else gets it meanwhile
        with pytest.raises(TransportFailure):
            call("GET", f"http://127.0.0.1:{taken.getsockname()[1]}/", deadline_seconds=30)


@pytest.mark.parametrize("reset", [False, True])
def test_a_closed_connection_is_a_transport_failure(reset: bool) -> None:
    with (
        serving(lambda connection, _request: connection.close(reset=reset)) as server,
        pytest.raises(TransportFailure),
    ):
        get(server)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.7\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        payload(200, b"half", {"Content-Length": "400"}),
        payload(200, b"zz\r\nnot a chunk\r\n", {"Content-Length": "", "Transfer-Encoding": "chunked"}),
        payload(200, b"not gzip", {"Content-Encoding": "gzip"}),
    ],
    ids=["not http", "no status", "many headers", "long header", "half a body", "bad chunk", "bad gzip"],
)
def test_a_broken_answer_is_a_transport_failure(raw: bytes) -> None:
    with serving(answering(raw, close=True)) as server, pytest.raises(TransportFailure):
        get(server)


@pytest.mark.parametrize(
    "url", ["http://", "nonsense", "http://[::1", "ftp://127.0.0.1/", "http://a\u0000b/"]
)
def test_a_url_that_cannot_be_called_is_a_transport_failure(url: str) -> None:
    with pytest.raises(TransportFailure):
        call("GET", url, deadline_seconds=1)


def test_a_name_that_does_not_exist_is_a_transport_failure() -> None:
    with pytest.raises(CallFailed):
        call("GET", "http://no-such-host.invalid/", deadline_seconds=5)


def test_an_announced_large_body_is_not_read() -> None:
    with (
        serving(answering(payload(200, b"", {"Content-Length": "10000000"}))) as server,
        pytest.raises(BodyTooLarge) as caught,
    ):
        get(server, maximum_body_bytes=1000)

    assert caught.value.status == 200


def test_a_large_body_without_a_length_is_cut() -> None:
    raw = payload(200, b"x" * 300_000, {"Content-Length": ""})
    with serving(answering(raw, close=True)) as server, pytest.raises(BodyTooLarge):
        get(server, maximum_body_bytes=100_000)


def test_a_small_body_that_unpacks_to_a_large_one_is_cut() -> None:
    packed = gzip.compress(b"\0" * (200 << 20))
    with (
        serving(answering(payload(200, packed, {"Content-Encoding": "gzip"}))) as server,
        pytest.raises(BodyTooLarge),
    ):
        get(server, maximum_body_bytes=1 << 20)


def test_a_body_of_exactly_the_bound_is_read() -> None:
    with serving(answering(payload(200, b"x" * 1000))) as server:
        assert len(get(server, maximum_body_bytes=1000).body) == 1000


def test_a_redirect_is_answered_and_not_followed() -> None:
    elsewhere = payload(302, b"x" * 50, {"Location": "http://127.0.0.1:1/\x7f%%%"})
    with serving(answering(elsewhere)) as server:
        assert get(server).status == 302
        assert server.accepted == 1


def test_it_sends_no_cookie_back() -> None:
    seen: list[Request] = []

    def serve(connection: Connection, request: Request) -> None:
        seen.append(request)
        connection.write(payload(200, b"{}", {"Set-Cookie": "session=secret; Path=/"}))

    with serving(serve) as server:
        get(server)
        get(server)

    assert [request.headers.get("cookie") for request in seen] == [None, None]


def test_it_does_not_read_proxies_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    with serving(answering(payload(200, b"direct"))) as server:
        assert get(server).body == b"direct"


def test_it_uses_every_address_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answering(payload(200, b"second"))) as server:
        families = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, server.port))
            for address in ("127.0.0.9", "127.0.0.1")
        ]
        real = socket.getaddrinfo

        def look_up(host: str, *rest: object, **more: object) -> object:
            return families if host == "boxes.test" else real(host, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        assert call("GET", f"http://boxes.test:{server.port}/", deadline_seconds=30).body == b"second"


def test_many_threads_call_at_once_and_share_connections() -> None:
    def serve(connection: Connection, request: Request) -> None:
        connection.write(payload(200, request.path.encode()))

    answers: Counter[bool] = Counter()
    start = threading.Barrier(32)

    def work(number: int) -> None:
        start.wait()
        for turn in range(20):
            reply = call("GET", f"{server.url}/{number}/{turn}", deadline_seconds=30)
            answers[reply.body == f"/{number}/{turn}".encode()] += 1

    with serving(serve) as server:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.accepted <= 32

    assert answers == {True: 640}


def test_a_new_thread_goes_on_with_the_connection_of_one_that_has_ended() -> None:
    with serving(answering(payload(200, b"{}"))) as server:
        for _ in range(5):
            thread = threading.Thread(target=get, args=(server,))
            thread.start()
            thread.join()

        assert server.accepted == 1


def test_one_call_in_time_and_one_late_do_not_disturb_each_other() -> None:
    def serve(connection: Connection, request: Request) -> None:
        if request.path == "/slow":
            connection.ending.wait()
        connection.write(payload(200, b"quick"))

    late: list[type[BaseException]] = []

    def slow() -> None:
        try:
            call("GET", f"{server.url}/slow", deadline_seconds=0.3)
        except CallFailed as error:
            late.append(type(error))

    with serving(serve) as server:
        thread = threading.Thread(target=slow)
        thread.start()
        bodies = {call("GET", f"{server.url}/quick", deadline_seconds=10).body for _ in range(20)}
        thread.join()

    assert (bodies, late) == ({b"quick"}, [DeadlineExceeded])


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # forking is what is tried here
def test_a_forked_child_uses_connections_of_its_own() -> None:
    with serving(answering(payload(200, b"{}"))) as server:
        get(server)
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                code = 0 if get(server).status == 200 else 1
            os._exit(code)
        _, status = os.waitpid(child, 0)
        assert (status, get(server).status, server.accepted) == (0, 200, 2)


def test_it_works_under_responses() -> None:
    with responses.RequestsMock() as stub:
        stub.get("https://box-api.internal/boxes", json={"boxes": []})
        stub.get("https://box-api.internal/boxes", body=ConnectionError("refused"))

        reply = call("GET", "https://box-api.internal/boxes", deadline_seconds=1)
        with pytest.raises(TransportFailure):
            call("GET", "https://box-api.internal/boxes", deadline_seconds=1)

    assert json.loads(reply.body) == {"boxes": []}


def test_the_failure_names_the_cause_and_nothing_else() -> None:
    with responses.RequestsMock() as stub:
        stub.get("https://box-api.internal/secret-path", body=ConnectionError("secret-text"))
        with pytest.raises(TransportFailure) as caught:
            call(
                "GET", "https://box-api.internal/secret-path", deadline_seconds=1, headers={"A": "secret-key"}
            )

    assert "secret" not in str(caught.value)
