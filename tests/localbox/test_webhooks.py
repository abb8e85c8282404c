"""Webhooks, as the server that receives them sees them."""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.localbox.client import Http, wait_until
from tests.localbox.receiver import Received, Receiver
from tests.localbox.server import LocalboxServer
from tests.ports import free_port

ALL = ["box.ready", "box.error", "box.archived", "box.hydrated"]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalboxServer]:
    settings = {"loopback_webhooks": "1", "webhook_backoff_seconds": "0"}
    with LocalboxServer(sandbox="plain", settings=settings) as started:
        yield started


@pytest.fixture
def http(server: LocalboxServer) -> Iterator[Http]:
    """A client; what webhooks a test leaves are deleted."""
    client = Http(server)
    yield client
    for hook in client("GET", "/webhooks").json()["webhooks"]:
        client("DELETE", f"/webhooks/{hook['id']}")


def hook(http: Http, url: str, events: list[str] = ALL) -> dict[str, Any]:
    answer = http("POST", "/webhooks", json={"url": url, "events": events})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def up(http: Http) -> str:
    box_id = http("POST", "/boxes").json()["box"]["id"]
    wait_for(http, box_id, "ready")
    return str(box_id)


def wait_for(http: Http, box_id: str, state: str) -> None:
    wait_until(lambda: http("GET", f"/boxes/{box_id}").json()["box"]["state"] == state)


def stop(http: Http, box_id: str) -> None:
    http("POST", f"/boxes/{box_id}/stop")
    wait_for(http, box_id, "archived")


def signed(delivery: Received, secret: str) -> bool:
    """Whether a delivery's signature is right, calculated as a receiver would."""
    headers = delivery.headers
    message = f"{headers['x-ascii-delivery']}.{headers['x-ascii-timestamp']}.".encode() + delivery.body
    expected = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    return hmac.compare_digest(headers["x-ascii-signature"], f"v1={expected}")


def test_a_delivery_says_what_happened_and_is_signed(http: Http) -> None:
    with Receiver() as receiver:
        secret = hook(http, receiver.url)["secret"]
        box_id = up(http)
        (delivery,) = wait_until(lambda: receiver.of_box(box_id))

    event = delivery.event
    assert delivery.path == "/hook?from=test"
    assert re.fullmatch(r"evt_[a-f0-9]{32}", event["id"])
    assert (event["type"], event["data"]["state"]) == ("box.ready", "ready")
    assert event["data"]["previousState"] == "provisioning"
    assert event["data"]["box"]["id"] == box_id
    assert (delivery.headers["x-ascii-event"], delivery.headers["x-ascii-attempt"]) == ("box.ready", "1")
    assert delivery.headers["x-ascii-delivery"] == event["id"]
    assert abs(int(delivery.headers["x-ascii-timestamp"]) - time.time()) < 300
    assert signed(delivery, secret)


def test_a_stop_and_a_resume_are_told_too(http: Http) -> None:
    with Receiver() as receiver:
        hook(http, receiver.url)
        box_id = up(http)
        stop(http, box_id)
        http("POST", f"/boxes/{box_id}/resume")
        wait_for(http, box_id, "ready")
        wait_until(lambda: len(receiver.of_box(box_id)) == 4)

    assert sorted(receiver.events(box_id)) == ["box.archived", "box.hydrated", "box.ready", "box.ready"]


def test_only_what_was_asked_for_is_told(http: Http) -> None:
    with Receiver() as receiver, Receiver() as witness:
        hook(http, receiver.url, ["box.archived"])
        hook(http, witness.url)
        box_id = up(http)
        stop(http, box_id)
        wait_until(lambda: len(witness.of_box(box_id)) == 2 and receiver.of_box(box_id))

    assert receiver.events(box_id) == ["box.archived"]


def test_a_failed_delivery_is_repeated_until_it_is_taken(http: Http) -> None:
    with Receiver([500, 404, 302, 204]) as receiver:
        secret = hook(http, receiver.url)["secret"]
        box_id = up(http)
        wait_until(lambda: len(receiver.of_box(box_id)) == 4)
        stop(http, box_id)
        wait_until(lambda: "box.archived" in receiver.events(box_id))

    tries = receiver.of_box(box_id)[:4]
    assert [each.headers["x-ascii-attempt"] for each in tries] == ["1", "2", "3", "4"]
    assert len({each.headers["x-ascii-delivery"] for each in tries}) == 1
    assert all(signed(each, secret) for each in tries)
    assert receiver.events(box_id) == ["box.ready"] * 4 + ["box.archived"]
    assert {each.path for each in receiver.received} == {"/hook?from=test"}  # no redirect was followed


def test_a_delivery_is_given_up_after_eight_attempts(server: LocalboxServer, http: Http) -> None:
    with Receiver([503]) as receiver:
        hook(http, receiver.url, ["box.ready"])
        box_id = up(http)
        wait_until(lambda: "webhook_delivery_given_up" in server.log())

    assert [each.headers["x-ascii-attempt"] for each in receiver.of_box(box_id)] == [
        str(n) for n in range(1, 9)
    ]


def test_a_receiver_that_never_answers_is_left_after_five_seconds(http: Http) -> None:
    with Receiver([0, 200]) as receiver:
        hook(http, receiver.url, ["box.ready"])
        box_id = up(http)
        first, second = wait_until(lambda: receiver.of_box(box_id), wanted=lambda seen: len(seen) == 2)

    assert second.headers["x-ascii-attempt"] == "2"
    assert first.headers["x-ascii-delivery"] == second.headers["x-ascii-delivery"]


def test_a_receiver_that_never_answers_does_not_hold_up_another(http: Http) -> None:
    with Receiver([0]) as deaf, Receiver() as receiver:
        hook(http, deaf.url)
        hook(http, receiver.url)
        boxes = [up(http) for _ in range(6)]  # more than may be under way to one webhook
        wait_until(lambda: all(receiver.of_box(box_id) for box_id in boxes))

        assert not deaf.released.is_set()  # it is still holding every request that it was sent
        assert deaf.received


def test_a_new_secret_signs_from_then_on(http: Http) -> None:
    with Receiver() as receiver:
        made = hook(http, receiver.url, ["box.ready"])
        rotated = http("POST", f"/webhooks/{made['webhook']['id']}/rotate").json()
        box_id = up(http)
        (delivery,) = wait_until(lambda: receiver.of_box(box_id))

    assert signed(delivery, rotated["secret"])
    assert not signed(delivery, made["secret"])


def test_a_deleted_webhook_is_told_nothing_more(http: Http) -> None:
    with Receiver([500]) as receiver, Receiver() as witness:
        made = hook(http, receiver.url)
        hook(http, witness.url)
        http("DELETE", f"/webhooks/{made['webhook']['id']}")
        box_id = up(http)
        wait_until(lambda: witness.of_box(box_id))

    assert receiver.received == []


def test_a_webhook_made_in_the_successor_dialect_is_told_in_its_words(
    server: LocalboxServer, http: Http
) -> None:
    with Receiver() as receiver:
        body = {"url": receiver.url, "events": ["sandbox.ready"]}
        made = Http(server, prefix="/api/v1")("POST", "/webhooks", json=body).json()
        box_id = up(http)
        (delivery,) = wait_until(lambda: list(receiver.received))

    assert made["webhook"]["events"] == ["sandbox.ready"]
    assert http("GET", "/webhooks").json()["webhooks"][0]["events"] == ["box.ready"]
    assert delivery.headers["x-ascii-event"] == delivery.event["type"] == "sandbox.ready"
    assert delivery.event["data"]["sandbox"]["id"] == box_id


def test_a_delivery_outlives_a_killed_provider(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(webhook_backoff_seconds="1"))
    port = free_port()
    hook(http, f"http://127.0.0.1:{port}/hook", ["box.ready"])
    box_id = up(http)
    wait_until(lambda: "webhook_delivery_failed" in own_server.log())

    own_server.restart()
    with Receiver(port=port) as receiver:
        (delivery,) = wait_until(lambda: receiver.of_box(box_id))

    assert int(delivery.headers["x-ascii-attempt"]) >= 2


CERTIFICATE = Path(__file__).with_name("localhost.pem")


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def test_an_https_receiver_that_can_be_trusted_is_told(
    own_server: LocalboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    http = Http(own_server.start())

    with Receiver(tls=tls()) as receiver:
        hook(http, receiver.url, ["box.ready"])
        box_id = up(http)
        wait_until(lambda: receiver.of_box(box_id))

    assert receiver.events(box_id) == ["box.ready"]


def test_an_https_receiver_that_nobody_vouches_for_is_told_nothing(
    server: LocalboxServer, http: Http
) -> None:
    with Receiver(tls=tls()) as receiver:
        hook(http, receiver.url, ["box.ready"])
        up(http)
        wait_until(lambda: "CERTIFICATE_VERIFY_FAILED" in server.log())

    assert receiver.received == []


# what may be registered


def test_there_are_at_most_ten_webhooks(http: Http) -> None:
    for number in range(10):
        hook(http, f"https://example.com/{number}")

    answer = http("POST", "/webhooks", json={"url": "https://example.com/more", "events": ALL})

    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_limit")


def test_a_url_has_one_webhook(http: Http) -> None:
    first, second = hook(http, "https://example.com/1"), hook(http, "https://example.com/2")
    url = {"url": "https://example.com/1"}

    refusals = [
        http("POST", "/webhooks", json=url | {"events": ALL}),
        http("PATCH", f"/webhooks/{second['webhook']['id']}", json=url),
    ]

    assert {answer.json()["code"] for answer in refusals} == {"webhook_exists"}
    assert http("PATCH", f"/webhooks/{first['webhook']['id']}", json=url).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"events": ALL}, "invalid_url"),
        ({"url": "https://example.com/"}, "invalid_events"),
        ({"url": "https://example.com/", "events": []}, "invalid_events"),
        ({"url": "https://example.com/", "events": "box.ready"}, "invalid_events"),
        ({"url": "https://example.com/", "events": ["box.gone"]}, "invalid_events"),
        ({"url": "https://example.com/", "events": [7]}, "invalid_events"),
        ({"url": "https://example.com/", "events": ["sandbox.ready"]}, "invalid_events"),
        ({"url": 7, "events": ALL}, "invalid_url"),
        ({"url": "https://10.0.0.1/", "events": ALL}, "invalid_url"),
        ({"url": "https://example.com/", "events": ALL, "name": ""}, "invalid_name"),
        ({"url": "https://example.com/", "events": ALL, "name": "n" * 101}, "invalid_name"),
    ],
    ids=str,
)
def test_a_webhook_with_a_wrong_field_is_refused(http: Http, body: dict[str, Any], code: str) -> None:
    answer = http("POST", "/webhooks", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert http("GET", "/webhooks").json()["webhooks"] == []


def test_a_change_of_nothing_is_refused(http: Http) -> None:
    made = hook(http, "https://example.com/")["webhook"]["id"]

    assert http("PATCH", f"/webhooks/{made}", json={}).json()["code"] == "no_changes"


def test_this_machine_is_refused_unless_the_operator_allows_it(localbox_server: LocalboxServer) -> None:
    answer = Http(localbox_server)("POST", "/webhooks", json={"url": "http://127.0.0.1:9/", "events": ALL})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_url")
