"""What waits or is under way when a webhook is replayed, switched off or deleted, or its owner may be told no more."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import User
from base.errors import CodedError
from base.pump import Holder, Outcome
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.deliveries import claim_due, seconds_until_due, settle
from openagents_site.webhooks.driver import DeliveryDriver
from openagents_site.webhooks.fan_out import fan_out
from openagents_site.webhooks.models import Attempt, Delivery, Subscription
from openagents_site.webhooks.rules import Answer
from openagents_site.webhooks.states import DisabledReason
from tests.webhooks.conftest import BoxOf, deliver, hours_pass, only_delivery, send_due
from tests.webhooks.receiver import Receiver, Reply

pytestmark = pytest.mark.django_db


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
