"""Deliveries of the provider: whose are taken, once, and what becomes of the row."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from base import notify, pump
from base.clock import database_now
from base.pump import Holder, Outcome
from boxes import retention
from boxes.models import Box, ReconciliationEvent, WebhookDelivery
from boxes.usage.settlement import SettlementDriver
from boxes.webhooks import Delivery, LookDriver, Untrusted, verified
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

SECRET = "whsec_" + "ab" * 32
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BOX_ID = "bx_8bhkse3n"


def signed(body: bytes, *, at: float, secret: str = SECRET, delivery: str = "evt_1") -> dict[str, str]:
    stamp = str(int(at))
    signature = hmac.new(secret.encode(), f"{delivery}.{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {
        "X-Ascii-Delivery": delivery,
        "X-Ascii-Timestamp": stamp,
        "X-Ascii-Signature": f"v1={signature}",
    }


def event(box_id: str = BOX_ID, kind: str = "box.archived", noun: str = "box") -> bytes:
    said = {"id": "evt_1", "type": kind, "data": {noun: {"id": box_id, "name": "x"}, "state": "archived"}}
    return json.dumps(said).encode()


# the signature


def check(headers: dict[str, str], body: bytes) -> Delivery:
    return verified(headers, body, secret=SECRET, now=NOW)


@pytest.mark.parametrize("seconds", [0, 299, -299])
def test_what_is_signed_and_from_now_is_believed(seconds: int) -> None:
    body = event()

    assert check(signed(body, at=NOW.timestamp() + seconds), body) == Delivery(
        "evt_1", "box.archived", BOX_ID
    )


def test_the_words_of_the_successor_are_read_too() -> None:
    body = event(kind="sandbox.ready", noun="sandbox")

    assert check(signed(body, at=NOW.timestamp()), body) == Delivery("evt_1", "box.ready", BOX_ID)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"{",
        b'{"data": 7}',
        b'{"data": {"box": []}}',
        b'{"data": {"box": {"id": 7}}}',
    ],
)
def test_a_signed_body_that_says_nothing_names_no_box(body: bytes) -> None:
    assert check(signed(body, at=NOW.timestamp()), body).box_id is None


@pytest.mark.parametrize(
    "change",
    [
        {"X-Ascii-Signature": ""},
        {"X-Ascii-Signature": "v1="},
        {"X-Ascii-Signature": "v1=" + "0" * 64},
        {"X-Ascii-Signature": "é"},
        {"X-Ascii-Delivery": "evt_2"},
        {"X-Ascii-Delivery": ""},
        {"X-Ascii-Delivery": "evt 1"},
        {"X-Ascii-Delivery": "x" * 201},
        {"X-Ascii-Timestamp": str(int(NOW.timestamp()) + 1)},
        {"X-Ascii-Timestamp": ""},
        {"X-Ascii-Timestamp": "-1"},
        {"X-Ascii-Timestamp": "1e9"},
        {"X-Ascii-Timestamp": "9" * 13},
        {"X-Ascii-Timestamp": "9" * 12},
    ],
)
def test_what_was_changed_is_not_believed(change: dict[str, str]) -> None:
    body = event()

    with pytest.raises(Untrusted):
        check(signed(body, at=NOW.timestamp()) | change, body)


@pytest.mark.parametrize("seconds", [301, -301, 10**8])
def test_what_is_old_or_from_the_future_is_not_believed(seconds: int) -> None:
    body = event()

    with pytest.raises(Untrusted):
        check(signed(body, at=NOW.timestamp() + seconds), body)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_only_the_very_body_that_was_signed_is_believed(body: bytes, other: bytes) -> None:
    headers = signed(body, at=NOW.timestamp())

    assert check(headers, body).id == "evt_1"
    if other != body:
        with pytest.raises(Untrusted):
            check(headers, other)


def test_another_secret_is_not_believed() -> None:
    body = event()

    with pytest.raises(Untrusted):
        check(signed(body, at=NOW.timestamp(), secret="whsec_other"), body)


# over HTTP


@pytest.fixture
def hook(box_api: Callable[..., None], db: None) -> Callable[..., Any]:
    """`hook(body, **changed headers)` delivers, signed as of now."""
    box_api(webhook_secret=SECRET)
    client = Client(enforce_csrf_checks=True)

    def deliver(body: bytes = event(), *, delivery: str = "evt_1", **headers: str) -> Any:
        sent = signed(body, at=time.time(), delivery=delivery) | headers
        return client.post("/hooks/box", body, content_type="application/json", headers=sent)

    return deliver


def test_a_delivery_is_taken(hook: Callable[..., Any]) -> None:
    answer = hook()

    assert (answer.status_code, answer.content) == (204, b"")
    assert WebhookDelivery.objects.get().event_type == "box.archived"


def test_a_delivery_that_is_not_trusted_is_told_nothing(hook: Callable[..., Any]) -> None:
    answer = hook(**{"X-Ascii-Signature": "v1=" + "0" * 64})

    assert (answer.status_code, answer.content) == (401, b"")
    assert not WebhookDelivery.objects.exists()


def test_without_a_secret_there_is_no_such_address(hook: Callable[..., Any], box_api: Any) -> None:
    box_api(webhook_secret="")

    assert hook().status_code == 404
    assert Client().get("/hooks/box").status_code == 404


def test_nothing_but_a_post_is_served(hook: Callable[..., Any]) -> None:
    assert Client().get("/hooks/box").status_code == 405


def test_a_body_that_is_too_large_is_not_read(hook: Callable[..., Any]) -> None:
    assert hook(b"x" * (64 << 10)).status_code == 204  # it is signed
    assert hook(b"x" * ((64 << 10) + 1), delivery="evt_2").status_code == 413


def test_a_delivery_counts_once(hook: Callable[..., Any], pair: Pair) -> None:
    pair(row={"next_reconciliation_at": database_now() + timedelta(hours=1)})
    assert hook().status_code == 204
    Box.objects.update(next_reconciliation_at=database_now() + timedelta(hours=1))

    assert hook().status_code == 204
    assert WebhookDelivery.objects.count() == 1
    assert Box.objects.get().next_reconciliation_at is not None


@pytest.mark.parametrize("box_id", ["bx_unknown", "x" * 201, "\x00\u0000", "a/b"])
def test_a_box_without_a_row_is_only_noted(
    hook: Callable[..., Any], box_id: str, provider: FakeProvider
) -> None:
    assert hook(event(box_id)).status_code == 204
    assert pump.run_once([LookDriver()]).claimed == 0
    assert provider.count() == 0


# what becomes of the row


def look(driver: LookDriver | None = None) -> int:
    return pump.run_once([driver or LookDriver()]).claimed


def test_a_row_that_backed_off_is_due_now(hook: Callable[..., Any], pair: Pair) -> None:
    box = pair(row={"next_reconciliation_at": database_now() + timedelta(hours=1)})

    hook()

    assert again(box).next_reconciliation_at is None


def test_a_box_that_ended_is_ended_at_once(
    hook: Callable[..., Any], pair: Pair, provider: FakeProvider
) -> None:
    box = pair(state="archived", extra={"costMicrousd": 7})
    hook()

    assert look() == 1
    assert (again(box).stop_reason, again(box).settled_cost_microusd) == ("provider_terminal", 7)
    assert [call.name for call in provider.calls()] == ["get"]


def test_a_box_that_is_ready_is_shown_as_ready(hook: Callable[..., Any], pair: Pair) -> None:
    box = pair(row={"state": "provisioning"})
    hook(event(kind="box.ready"))

    look()

    assert again(box).state == "ready"


def test_nothing_is_believed_of_what_a_delivery_says(hook: Callable[..., Any], pair: Pair) -> None:
    box = pair()
    hook(event(kind="box.archived"))

    look()

    assert (again(box).state, again(box).stopped_at) == ("ready", None)


def test_many_deliveries_of_one_box_are_one_look(
    hook: Callable[..., Any], pair: Pair, provider: FakeProvider
) -> None:
    pair()
    for number in range(5):
        hook(delivery=f"evt_{number}")

    assert look() == 1
    assert look() == 0
    assert provider.count("get") == 1


@pytest.mark.parametrize(
    "fault", [{"status": 404, "code": "not_found"}, {"status": 500}, {"drop_before": True}, {"status": 429}]
)
def test_a_look_that_shows_no_box_leaves_everything_to_the_pass(
    hook: Callable[..., Any], pair: Pair, provider: FakeProvider, fault: dict[str, Any]
) -> None:
    box = pair()
    provider.next("get", **fault)
    hook()

    look()

    row = again(box)
    assert (row.stopped_at, row.reconciliation_failures, row.next_reconciliation_at) == (None, 0, None)
    assert provider.count("get") == 1


def test_a_box_that_is_due_for_a_stop_is_left_to_the_pass(
    hook: Callable[..., Any], pair: Pair, provider: FakeProvider
) -> None:
    box = pair(age=3601)
    hook(event(kind="box.ready"))

    look()

    assert (again(box).stopped_at, again(box).last_reconciled_at is not None) == (None, True)
    assert provider.count("stop") == 0


def test_a_look_does_not_write_over_a_stop(hook: Callable[..., Any], pair: Pair) -> None:
    box, driver = pair(), LookDriver()
    hook()
    (task,) = driver.claim(Holder(), 10)
    seen = driver.perform(task)
    Box.objects.update(state="archived", stopped_at=database_now(), stop_reason="user_requested")

    driver.settle(Holder(), [Outcome(task, answer=seen)])

    assert (again(box).state, again(box).last_reconciled_at) == ("archived", None)


def test_an_odd_box_is_made_visible_at_once(hook: Callable[..., Any], pair: Pair) -> None:
    pair(name="renamed")
    hook()

    look()

    assert ReconciliationEvent.objects.get().event_type == "marker_missing"


def test_a_stopped_box_that_came_down_is_settled_at_once(
    hook: Callable[..., Any], make_row: Pair, provider: FakeProvider
) -> None:
    provider.add_box(BOX_ID, age=1000).state = "archived"
    later = database_now() + timedelta(hours=1)
    box = make_row(stopped_at=database_now(), state="archiving", next_settlement_at=later)
    hook()

    assert (look(), pump.run_once([SettlementDriver()]).claimed) == (0, 1)
    assert again(box).settled_cost_microusd == 10_000


def test_a_settled_box_is_left_alone(
    hook: Callable[..., Any], make_row: Pair, provider: FakeProvider
) -> None:
    now = database_now()
    make_row(stopped_at=now, usage_settled_at=now)
    hook()

    assert pump.run_once([LookDriver(), SettlementDriver()]).claimed == 0


def test_a_new_box_is_looked_at_before_its_next_turn(hook: Callable[..., Any], pair: Pair) -> None:
    later = database_now() + timedelta(hours=1)
    box = pair(row={"state": "provisioning", "create_key": "k", "next_provision_at": later})
    hook(event(kind="box.ready"))

    assert again(box).next_provision_at < later


def test_a_stop_that_somebody_is_carrying_out_is_not_hurried(hook: Callable[..., Any], pair: Pair) -> None:
    later = database_now() + timedelta(seconds=90)
    box = pair(row={"next_provision_at": later, "stop_requested_at": database_now()})
    hook()

    assert again(box).next_provision_at == later


@pytest.mark.django_db(transaction=True)
def test_the_worker_is_woken(hook: Callable[..., Any], pair: Pair) -> None:
    pair()
    with notify.own_connection() as link:
        notify.listen(link, [notify.DUE])
        hook()
        woken = {each.payload for each in link.notifies(timeout=10, stop_after=2)}

    assert woken == {"looks", "provisioning"}
    assert LookDriver().seconds_until_due() == 0


def test_with_nothing_to_look_at_it_sleeps(db: None) -> None:
    assert LookDriver().seconds_until_due() is None


def test_old_deliveries_are_forgotten(hook: Callable[..., Any]) -> None:
    hook()
    hook(delivery="evt_2")
    WebhookDelivery.objects.filter(pk="evt_1").update(received_at=database_now() - timedelta(days=8))

    retention.prune()

    assert [row.pk for row in WebhookDelivery.objects.all()] == ["evt_2"]
