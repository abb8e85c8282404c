"""Deliveries over real HTTP: signed, tried again, given up, switched off, replayed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from standardwebhooks import WebhookVerificationError

from accounts.models import User
from base.errors import CodedError
from base.pump import Holder, Outcome
from openagents_site.webhooks import rules, subscriptions
from openagents_site.webhooks.deliveries import PER_WEBHOOK, claim_due, seconds_until_due, settle
from openagents_site.webhooks.driver import DeliveryDriver
from openagents_site.webhooks.fan_out import fan_out
from openagents_site.webhooks.models import Attempt, Delivery, Event, Subscription
from openagents_site.webhooks.rules import Answer
from openagents_site.webhooks.states import DisabledReason
from tests.webhooks.conftest import BoxOf, deliver, hours_pass, only_delivery, secret_of, send_due
from tests.webhooks.receiver import Receiver, Reply
from work.models import Incident

pytestmark = pytest.mark.django_db


@pytest.fixture
def event(hook: Subscription, owner: User, box_of: BoxOf) -> Any:
    """Something to be told."""
    return box_of(owner)


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


def test_a_replay_is_the_same_message_once_more(hook: Subscription, event: Any, receiver: Receiver) -> None:
    deliver()

    subscriptions.replay(only_delivery())
    assert send_due() == 1

    delivery = only_delivery()
    assert (delivery.state, delivery.attempts, delivery.replays) == ("delivered", 2, 1)
    assert len({each.message_id for each in receiver.received}) == 1


def test_a_replay_of_what_waits_makes_it_due(hook: Subscription, event: Any, receiver: Receiver) -> None:
    receiver.answers(Reply(500), Reply(200))
    deliver()

    subscriptions.replay(only_delivery())

    assert send_due() == 1
    assert only_delivery().state == "delivered"


def test_a_webhook_that_is_off_is_not_sent_to(hook: Subscription, event: Any, receiver: Receiver) -> None:
    receiver.answers(Reply(500))
    deliver()
    subscriptions.disable(hook.pk, DisabledReason.OWNER)
    hours_pass(10)

    assert send_due() == 0
    assert only_delivery().state == "cancelled"
    with pytest.raises(CodedError) as refused:
        subscriptions.replay(only_delivery())
    assert refused.value.code == "webhook_disabled"


def test_what_was_cancelled_can_be_replayed_once_it_is_on_again(
    hook: Subscription, event: Any, receiver: Receiver
) -> None:
    receiver.answers(Reply(500), Reply(200))
    deliver()
    subscriptions.disable(hook.pk, DisabledReason.OWNER)
    subscriptions.enable(hook.pk)

    subscriptions.replay(only_delivery())
    send_due()

    assert only_delivery().state == "delivered"


def test_switched_off_while_a_delivery_is_under_way_its_answer_still_counts(
    hook: Subscription, event: Any, receiver: Receiver
) -> None:
    fan_out()
    driver = DeliveryDriver()
    (task,) = driver.claim(Holder(), 10)
    subscriptions.disable(hook.pk, DisabledReason.OWNER)
    assert only_delivery().state == "pending"

    driver.settle(Holder(), [Outcome(task, answer=driver.perform(task))])

    assert only_delivery().state == "delivered"


def test_switched_off_while_a_delivery_fails_it_is_not_tried_again(hook: Subscription, event: Any) -> None:
    fan_out()
    (task,) = claim_due(Holder(), 10)
    subscriptions.disable(hook.pk, DisabledReason.OWNER)

    assert settle(task, Answer(500), chance=0)

    assert only_delivery().state == "cancelled"


def test_what_a_dead_worker_held_of_a_webhook_that_is_off_is_cancelled(
    hook: Subscription, event: Any
) -> None:
    fan_out()
    claim_due(Holder(), 10)
    subscriptions.disable(hook.pk, DisabledReason.OWNER)
    hours_pass(1)

    assert send_due() == 0
    assert only_delivery().state == "cancelled"


def closed(owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)


def demoted(owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(is_staff=False)


@pytest.mark.parametrize("change", [closed, demoted])
def test_who_may_be_told_no_more_is_not_told_what_still_waited(
    staff: User, owner: User, box_of: BoxOf, receiver: Receiver, change: Callable[[User], None]
) -> None:
    subscriptions.create(staff, url=receiver.url, all_owners=True)
    box_of(owner)
    fan_out()
    change(staff)

    assert send_due() == 0

    assert (only_delivery().state, receiver.received, seconds_until_due()) == ("cancelled", [], None)
    subscriptions.replay(only_delivery())
    assert send_due() == 0


def test_who_is_staff_no_more_is_still_told_of_their_own(
    staff: User, box_of: BoxOf, receiver: Receiver
) -> None:
    subscriptions.create(staff, url=receiver.url)
    box_of(staff)
    fan_out()
    demoted(staff)

    assert send_due() == 1


def test_a_try_that_is_written_twice_counts_once(hook: Subscription, event: Any) -> None:
    fan_out()
    (task,) = claim_due(Holder(), 10)
    assert settle(task, Answer(500), chance=0)

    assert not settle(task, Answer(500), chance=0)

    assert (only_delivery().attempts, only_delivery().failures) == (1, 1)
    assert Attempt.objects.count() == 1


def test_deleted_while_a_delivery_is_under_way_nothing_is_written(hook: Subscription, event: Any) -> None:
    fan_out()
    (task,) = claim_due(Holder(), 10)
    hook.delete()

    assert not settle(task, Answer(200), chance=0)
    assert not Attempt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_deleted_while_a_try_is_written_down_it_goes_with_its_log(
    owner: User, receiver: Receiver, box_of: BoxOf
) -> None:
    hook, _ = subscriptions.create(owner, url=receiver.url)
    box_of(owner)
    fan_out()
    (task,) = claim_due(Holder(), 10)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert settle(task, Answer(500), chance=0)
        deleted = pool.submit(deleted_elsewhere, hook)
        until_somebody_waits_for_a_lock()

    deleted.result()
    assert [model for model in (Subscription, Delivery, Attempt) if model.objects.exists()] == []


def deleted_elsewhere(hook: Subscription) -> None:
    try:
        subscriptions.delete(Subscription.objects.filter(pk=hook.pk))
    finally:
        connection.close()


def until_somebody_waits_for_a_lock() -> None:
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with connection.cursor() as cursor:
        while cursor.execute("select pg_stat_clear_snapshot()") and cursor.execute(waiting).fetchone() == (
            0,
        ):
            time.sleep(0.01)


def test_a_worker_that_slept_through_its_lease_writes_nothing(hook: Subscription, event: Any) -> None:
    fan_out()
    (slow,) = claim_due(Holder(), 10)
    assert claim_due(Holder(), 10) == []
    hours_pass(1)
    (quick,) = claim_due(Holder(), 10)

    assert settle(quick, Answer(200), chance=0)
    assert not settle(slow, Answer(500), chance=0)
    assert only_delivery().state == "delivered"


def test_a_slow_receiver_has_a_few_deliveries_under_way_and_others_are_not_held_up(
    hook: Subscription, owner: User, stranger: User, box_of: BoxOf, receiver: Receiver
) -> None:
    other, _ = subscriptions.create(stranger, url=receiver.url)
    for _ in range(PER_WEBHOOK + 5):
        box_of(owner)
    box_of(stranger)
    fan_out()

    first = claim_due(Holder(), 100)

    assert sum(task.webhook == hook.pk for task in first) == PER_WEBHOOK
    assert sum(task.webhook == other.pk for task in first) == 1
    assert claim_due(Holder(), 100) == []
    settle(first[0], Answer(200), chance=0)
    settle(first[1], Answer(200), chance=0)
    assert 1 <= len(claim_due(Holder(), 100)) <= 2


def test_nobody_asks_on_and_on_for_what_a_slow_receiver_holds_up(
    hook: Subscription, owner: User, box_of: BoxOf
) -> None:
    for _ in range(PER_WEBHOOK + 1):
        box_of(owner)
    fan_out()
    (first, *_) = claim_due(Holder(), 100)

    assert claim_due(Holder(), 100) == []
    assert seconds_until_due() is None
    assert settle(first, Answer(200), chance=0)
    assert seconds_until_due() == 0


def test_a_driver_that_breaks_costs_a_try_and_not_the_delivery(
    hook: Subscription, event: Any, receiver: Receiver
) -> None:
    fan_out()
    driver = DeliveryDriver()
    (task,) = driver.claim(Holder(), 1)
    driver.settle(Holder(), [Outcome(task, error=ZeroDivisionError())])

    assert only_delivery().last_error == "internal_error"
    hours_pass(1)
    send_due()
    assert only_delivery().state == "delivered"


@pytest.mark.django_db(transaction=True)
def test_several_workers_send_each_delivery_once(owner: User, receiver: Receiver, box_of: BoxOf) -> None:
    subscriptions.create(owner, url=receiver.url)
    for _ in range(12):
        box_of(owner)
    deliver(limit=0)

    def work() -> None:
        while Delivery.objects.filter(state="pending").exists():
            send_due(limit=2)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(receiver.received) == len({each.message_id for each in receiver.received}) == 12


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
