"""Deliveries over real HTTP: signed, tried again, given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from standardwebhooks import WebhookVerificationError

from accounts.models import User
from base.pump import Holder
from openagents_site.webhooks import rules, subscriptions
from openagents_site.webhooks.deliveries import claim_due, seconds_until_due
from openagents_site.webhooks.models import Delivery, Event, Subscription
from tests.webhooks.conftest import BoxOf, deliver, hours_pass, only_delivery, secret_of, send_due
from tests.webhooks.receiver import Receiver, Reply
from work.models import Incident

pytestmark = pytest.mark.django_db


def test_it_is_posted_as_json_and_signed(hook: Subscription, event: Any, receiver: Receiver) -> None:
    deliver()

    (got,) = receiver.received
    body = got.verified(secret_of(hook))
    assert (got.path, got.headers["content-type"]) == ("/hook", "application/json")
    assert (body["type"], body["data"]["id"]) == ("box.created", str(event.pk))
    assert set(body) == {"type", "timestamp", "data"}
    delivery = only_delivery()
    assert (delivery.state, delivery.attempts, delivery.last_status) == ("delivered", 1, 200)
    assert got.message_id == delivery.event.message_id


def test_another_secret_does_not_verify_it(hook: Subscription, event: Any, receiver: Receiver) -> None:
    deliver()

    with pytest.raises(WebhookVerificationError):
        receiver.received[0].verified("whsec_" + "QUJD" * 8)


def test_what_was_delivered_is_not_sent_again(hook: Subscription, event: Any, receiver: Receiver) -> None:
    deliver()
    hours_pass(500)

    assert deliver() == 0
    assert seconds_until_due() is None


def test_a_failure_is_tried_again_under_the_same_id(
    hook: Subscription, event: Any, receiver: Receiver
) -> None:
    receiver.answers(Reply(500), Reply(302, {"Location": receiver.url}), Reply(204))
    deliver()
    assert send_due() == 0  # not yet

    for _ in range(2):
        hours_pass(1)
        assert send_due() == 1

    delivery = only_delivery()
    assert (delivery.state, delivery.attempts) == ("delivered", 3)
    assert list(delivery.attempt_log.order_by("number").values_list("number", "status")) == [
        (1, 500),
        (2, 302),
        (3, 204),
    ]
    assert len({each.message_id for each in receiver.received}) == 1
    assert len({each.body for each in receiver.received}) == 1
    for each in receiver.received:
        each.verified(secret_of(hook))


def test_retry_after_is_honoured(hook: Subscription, event: Any, receiver: Receiver) -> None:
    receiver.answers(Reply(429, {"Retry-After": "7200"}), Reply(200))

    deliver()

    assert 7_100 < (seconds_until_due() or 0) <= 7_200
    hours_pass(1)
    assert send_due() == 0
    hours_pass(1.01)
    assert send_due() == 1


def test_it_is_given_up_after_ten_tries(hook: Subscription, event: Any, receiver: Receiver) -> None:
    receiver.answers(Reply(503))
    deliver()
    for _ in range(9):
        hours_pass(27)
        Subscription.objects.update(failing_since=None)
        assert send_due() == 1
    hours_pass(500)

    assert send_due() == 0
    delivery = only_delivery()
    assert (delivery.state, delivery.attempts) == ("exhausted", 10)
    assert delivery.ended_at is not None


def test_410_switches_the_webhook_off(
    hook: Subscription, owner: User, event: Any, box_of: BoxOf, receiver: Receiver
) -> None:
    box_of(owner)
    receiver.answers(Reply(410))
    deliver(limit=1)

    hook.refresh_from_db()
    assert (hook.is_enabled, hook.disabled_reason) == (False, "gone")
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["cancelled", "exhausted"]
    assert send_due() == 0


def test_a_receiver_that_takes_nothing_for_days_is_given_up_and_its_owner_told(
    hook: Subscription, event: Any, receiver: Receiver, owner: User
) -> None:
    receiver.answers(Reply(500))
    deliver()
    hours_pass(5 * 24 - 2)
    send_due()
    hook.refresh_from_db()
    assert hook.is_enabled

    hours_pass(27)
    send_due()

    hook.refresh_from_db()
    assert (hook.is_enabled, hook.disabled_reason) == (False, "failing")
    assert only_delivery().state == "cancelled"
    incident = Incident.objects.get(code="webhook_disabled")
    assert (incident.owner_user_id, incident.correlation_ref) == (owner.pk, str(hook.pk))
    assert receiver.url not in str(incident.context)


def test_one_success_makes_good(hook: Subscription, event: Any, receiver: Receiver) -> None:
    receiver.answers(Reply(500), Reply(200))
    deliver()
    hook.refresh_from_db()
    assert hook.failing_since is not None

    hours_pass(200)
    send_due()

    hook.refresh_from_db()
    assert (hook.is_enabled, hook.failing_since) == (True, None)


def test_both_secrets_sign_for_a_day(
    hook: Subscription, owner: User, event: Any, box_of: BoxOf, receiver: Receiver
) -> None:
    old = secret_of(hook)
    new = subscriptions.rotate(hook)
    deliver()
    (first,) = receiver.received

    assert first.verified(old) == first.verified(new)
    hours_pass(24.1)
    box_of(owner)
    deliver()

    second = receiver.received[1]
    second.verified(new)
    with pytest.raises(WebhookVerificationError):
        second.verified(old)


def test_secrets_are_sealed(hook: Subscription) -> None:
    secret = secret_of(hook)
    subscriptions.rotate(hook)

    with connection.cursor() as cursor:
        cursor.execute("select s::text, encode(sealed_secret, 'escape') from webhook_subscriptions s")
        kept = str(cursor.fetchall())
    assert secret.removeprefix("whsec_") not in kept
    task_text = repr(claim_due(Holder(), 1))
    assert "sealed" not in task_text


def test_a_secret_that_cannot_be_read_is_said_and_nothing_is_sent(
    hook: Subscription, event: Any, receiver: Receiver, settings: Any
) -> None:
    settings.SECRET_KEY = "another" * 10
    deliver()

    assert not receiver.received
    assert only_delivery().last_error == "secret_unreadable"


def test_pauses_are_spread(
    hook: Subscription, event: Any, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setattr("openagents_site.webhooks.posting.chance", lambda: 1.0)
    receiver.answers(Reply(500))

    deliver()

    longest = rules.DELAYS_SECONDS[0] * (1 + rules.JITTER)
    assert longest - 1 < (seconds_until_due() or 0) <= longest


def test_a_test_is_sent_to_one_webhook(hook: Subscription, owner: User, receiver: Receiver) -> None:
    subscriptions.create(owner, url=receiver.url)

    subscriptions.send_test(hook)
    deliver()

    (got,) = receiver.received
    assert got.verified(secret_of(hook))["type"] == "webhook.test"


def test_a_test_passes_by_the_list_of_types(hook: Subscription, receiver: Receiver) -> None:
    subscriptions.change(hook, event_types=["leak.*"])

    subscriptions.send_test(hook)
    deliver()

    assert len(receiver.received) == 1


def test_the_time_of_the_try_is_signed_not_that_of_the_event(
    hook: Subscription, event: Any, receiver: Receiver, webhook_settings: Callable[..., None]
) -> None:
    Event.objects.update(occurred_at="2020-01-01T00:00:00Z")
    Subscription.objects.update(created_at="2019-01-01T00:00:00Z")
    deliver()

    body = receiver.received[0].verified(secret_of(hook))
    assert body["timestamp"] == "2020-01-01T00:00:00Z"
