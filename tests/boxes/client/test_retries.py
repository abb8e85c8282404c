"""What is sent again, how often, and what never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import responses
from structlog.testing import capture_logs

from boxes.client import BoxClient, Gate
from boxes.conf import BoxApi
from boxes.errors import ProviderError, RetryLater, Unknown
from tests.boxes.client.conftest import BASE

BOX = f"{BASE}/boxes/bx_8bhkse3n"
READY = {"box": {"id": "bx_8bhkse3n", "state": "ready"}}


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_look_is_repeated_up_to_three_requests(
    client: BoxClient, stub: responses.RequestsMock, status: int
) -> None:
    stub.get(BOX, status=status, json={})

    with pytest.raises(ProviderError):
        client.get("bx_8bhkse3n", tries=3)
    assert len(stub.calls) == 3


def test_a_look_is_repeated_when_the_transport_fails(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(BOX, body=ConnectionError("refused"))
    with pytest.raises(Unknown) as caught:
        client.get("bx_8bhkse3n", tries=3)

    assert (caught.value.code, len(stub.calls)) == ("box_unreachable", 3)


def test_the_first_good_answer_ends_the_tries(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(BOX, body=ConnectionError("closed"))
    stub.get(BOX, status=503)
    stub.get(BOX, json=READY)

    assert client.get("bx_8bhkse3n", tries=3).is_up


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 409, 410, 501])
def test_other_answers_are_not_repeated(client: BoxClient, stub: responses.RequestsMock, status: int) -> None:
    stub.get(BOX, status=status, body="")

    with pytest.raises(ProviderError):
        client.get("bx_8bhkse3n", tries=3)
    assert len(stub.calls) == 1


def test_a_look_for_a_person_is_sent_once(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(BOX, status=503)

    with pytest.raises(Unknown):
        client.get("bx_8bhkse3n")
    assert len(stub.calls) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120), ("Mon, 30 Nov 2026 12:02:00 GMT", 120), ("99999999999", 3600), ("0", 0)],
)
def test_a_pause_that_is_asked_for_ends_the_tries(
    client: BoxClient, stub: responses.RequestsMock, header: str, seconds: int
) -> None:
    date = "Mon, 30 Nov 2026 12:00:00 GMT"
    stub.get(BOX, status=429, json={}, headers={"Retry-After": header, "Date": date})
    with pytest.raises(RetryLater) as caught:
        client.get("bx_8bhkse3n", tries=3)

    assert (caught.value.retry_after_seconds, len(stub.calls)) == (seconds, 1)


def test_a_pause_that_makes_no_sense_is_no_pause(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(BOX, status=429, json={}, headers={"Retry-After": "soon"})
    with pytest.raises(RetryLater) as caught:
        client.get("bx_8bhkse3n", tries=3)

    assert (caught.value.retry_after_seconds, len(stub.calls)) == (None, 3)


WRITES: list[tuple[str, str, Callable[[BoxClient], Any]]] = [
    ("POST", "/boxes", lambda client: client.create("key-1", ttl_seconds=60)),
    ("PATCH", "/boxes/bx_8bhkse3n", lambda client: client.patch("bx_8bhkse3n", name="n")),
    ("POST", "/boxes/bx_8bhkse3n/stop", lambda client: client.stop("bx_8bhkse3n")),
    ("POST", "/boxes/bx_8bhkse3n/commands", lambda client: client.command("bx_8bhkse3n", "true", 5)),
    ("POST", "/boxes/bx_8bhkse3n/commands", lambda client: client.command("bx_8bhkse3n", "true", 500)),
    ("DELETE", "/boxes/bx_8bhkse3n", lambda client: client.delete("bx_8bhkse3n")),
]


@pytest.mark.parametrize(("method", "path", "call"), WRITES)
@pytest.mark.parametrize("answer", [{"status": 503}, {"status": 429}, {"body": ConnectionError("closed")}])
def test_what_changes_something_is_sent_once(
    client: BoxClient,
    stub: responses.RequestsMock,
    method: str,
    path: str,
    call: Callable[[BoxClient], Any],
    answer: dict[str, Any],
) -> None:
    stub.add(method, BASE + path, **answer)

    with pytest.raises(ProviderError):
        call(client)
    assert len(stub.calls) == 1


def test_the_pause_between_tries_doubles(stub: responses.RequestsMock) -> None:
    pauses: list[float] = []
    client = BoxClient(BoxApi(base_url=BASE, api_key="k", retry_delay_ms=200), sleep=pauses.append)
    stub.get(BOX, status=500)
    with pytest.raises(Unknown):
        client.get("bx_8bhkse3n", tries=3)

    assert pauses == [0.2, 0.4]


def test_a_gate_keeps_quiet_for_as_long_as_was_asked(stub: responses.RequestsMock) -> None:
    now = [1000.0]
    client = BoxClient(BoxApi(base_url=BASE, api_key="k"), gate=Gate(monotonic=lambda: now[0]))
    stub.get(BOX, status=429, headers={"Retry-After": "120"})
    stub.get(BOX, json=READY)
    waits: list[float | None] = []
    for later in (0, 30, 60):
        now[0] += later
        with pytest.raises(RetryLater) as caught:
            client.get("bx_8bhkse3n", tries=3)
        waits.append(caught.value.retry_after_seconds)
    now[0] += 30

    assert (waits, client.get("bx_8bhkse3n").is_up, len(stub.calls)) == ([120, 90, 30], True, 2)


def test_a_limit_on_starts_does_not_keep_boxes_from_being_stopped(stub: responses.RequestsMock) -> None:
    client = BoxClient(BoxApi(base_url=BASE, api_key="k"), gate=Gate())
    stub.post(f"{BASE}/boxes", status=429, headers={"Retry-After": "120"})
    stub.post(f"{BOX}/stop", json=READY)
    with pytest.raises(ProviderError):
        client.create("key-1", ttl_seconds=60)

    assert client.stop("bx_8bhkse3n").is_up
    with pytest.raises(RetryLater):
        client.create("key-2", ttl_seconds=60)


def test_each_request_leaves_a_line_without_header_or_body(
    client: BoxClient, stub: responses.RequestsMock
) -> None:
    stub.get(BOX, json={"box": {"id": "bx_8bhkse3n", "state": "ready", "name": "private-name"}})
    stub.post(f"{BOX}/commands", status=500, json={"error": "private-text"})
    stub.post(f"{BOX}/stop", body=ConnectionError("private-address"))
    with capture_logs() as lines:
        client.get("bx_8bhkse3n")
        for call in (
            lambda: client.command("bx_8bhkse3n", "private-command", 5),
            lambda: client.stop("bx_8bhkse3n"),
        ):
            with pytest.raises(Unknown):
                call()

    told = [(line["call"], line["outcome"], line.get("status"), line["log_level"]) for line in lines]
    assert told == [
        ("get", "ok", 200, "debug"),
        ("command", "unknown", 500, "warning"),
        ("stop", "TransportFailure", None, "warning"),
    ]
    assert "private" not in str(lines)
    assert "box-client-test" not in str(lines)
