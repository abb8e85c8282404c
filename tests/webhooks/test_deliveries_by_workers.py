"""Deliveries between workers: leases, places, breaks, and each sent once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from base import notify
from base.pump import Holder, Outcome
from base.sql import ClockTimestamp
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.deliveries import PER_WEBHOOK, claim_due, seconds_until_due, settle
from openagents_site.webhooks.driver import DeliveryDriver
from openagents_site.webhooks.fan_out import fan_out
from openagents_site.webhooks.models import Delivery, Subscription
from openagents_site.webhooks.rules import Answer
from tests.threads import all_at_once
from tests.webhooks.conftest import BoxOf, deliver, hours_pass, only_delivery, send_due
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db


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
@pytest.mark.parametrize("kind", ["owner gone", "left behind"])
def test_a_worker_does_not_wait_for_one_that_cancels_the_same_deliveries(
    hook: Subscription, owner: User, event: Any, kind: str
) -> None:
    fan_out()
    if kind == "owner gone":
        User.objects.filter(pk=owner.pk).update(is_active=False)
    else:
        claim_due(Holder(), 10)
        hours_pass(1)
        Subscription.objects.filter(pk=hook.pk).update(disabled_at=ClockTimestamp(), disabled_reason="owner")

    with notify.own_connection() as other, other.transaction(), connection.cursor() as cursor:
        other.execute("select id from webhook_deliveries for update")
        cursor.execute("set lock_timeout = '2s'")
        assert claim_due(Holder(), 10) == []
        cursor.execute("reset lock_timeout")
    assert only_delivery().state == "pending"

    assert claim_due(Holder(), 10) == []
    assert only_delivery().state == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_several_workers_send_each_delivery_once(owner: User, receiver: Receiver, box_of: BoxOf) -> None:
    subscriptions.create(owner, url=receiver.url)
    for _ in range(12):
        box_of(owner)
    deliver(limit=0)

    def work(_: int) -> None:
        while Delivery.objects.filter(state="pending").exists():
            send_due(limit=2)

    all_at_once(work, range(3))

    assert len(receiver.received) == len({each.message_id for each in receiver.received}) == 12
