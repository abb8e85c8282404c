"""Who is told of what, and that nobody is told twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from accounts.services import delete_user
from base import pump
from boxes.models import Box, ReconciliationEvent
from boxes.serializers import BoxSerializer
from conversations.services import ensure_conversation
from openagents_site.webhooks import rendering, subscriptions
from openagents_site.webhooks.fan_out import EventDriver, fan_out
from openagents_site.webhooks.models import Delivery, Event, Subscription
from tests.threads import all_at_once
from tests.webhooks.conftest import BoxOf
from tests.webhooks.receiver import Receiver
from work import incidents

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:9/hook"


def told(subscription: Subscription) -> list[str]:
    return sorted(subscription.deliveries.values_list("event__event_type", flat=True))


def test_owners_are_told_of_their_own(hook: Subscription, owner: User, stranger: User, box_of: BoxOf) -> None:
    theirs, _ = subscriptions.create(stranger, url=URL)
    box_of(owner)

    assert fan_out() == 1

    assert told(hook) == ["box.created"]
    assert told(theirs) == []


def test_staff_are_told_of_everything_if_they_asked_for_it(staff: User, owner: User, box_of: BoxOf) -> None:
    everything, _ = subscriptions.create(staff, url=URL, all_owners=True)
    own, _ = subscriptions.create(staff, url=URL)
    box_of(owner)
    ReconciliationEvent.objects.create(
        provider_box_id="x", event_type="leak", reason="unclaimed", observed_at=timezone.now()
    )

    fan_out()

    assert told(everything) == ["box.created", "leak.found"]
    assert told(own) == []


def test_who_is_staff_no_more_is_told_of_nothing(staff: User, owner: User, box_of: BoxOf) -> None:
    everything, _ = subscriptions.create(staff, url=URL, all_owners=True)
    box_of(owner)
    User.objects.filter(pk=staff.pk).update(is_staff=False)

    fan_out()

    assert told(everything) == []


def test_leaks_are_not_for_owners(hook: Subscription) -> None:
    ReconciliationEvent.objects.create(
        provider_box_id="x", event_type="leak", reason="unclaimed", observed_at=timezone.now()
    )

    fan_out()

    assert told(hook) == []


def test_an_incident_is_its_owners(hook: Subscription, owner: User, stranger: User) -> None:
    incidents.record(code="cancelled", owner_user=owner)
    incidents.record(code="cancelled", owner_user=stranger)
    incidents.record(code="cancelled", conversation=ensure_conversation("a browser"))

    fan_out()

    assert told(hook) == ["incident.open"]


def test_only_the_listed_types_are_told(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    some, _ = subscriptions.create(owner, url=URL, event_types=["run.*", "box.ready"])
    box = box_of(owner)
    Box.objects.filter(pk=box.pk).update(state="ready")

    fan_out()

    assert told(hook) == ["box.created", "box.ready"]
    assert told(some) == ["box.ready"]


def test_a_webhook_is_not_told_of_what_was_before_it(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    box_of(owner)
    late, _ = subscriptions.create(owner, url=URL)
    Subscription.objects.filter(pk=late.pk).update(created_at=timezone.now())

    fan_out()

    assert (told(hook), told(late)) == (["box.created"], [])


def test_an_event_that_nobody_wants_is_not_kept(
    hook: Subscription, owner: User, stranger: User, box_of: BoxOf
) -> None:
    box_of(stranger)

    fan_out()

    assert not Event.objects.exists()


def test_a_second_look_makes_nothing_new(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    box_of(owner)

    assert (fan_out(), fan_out()) == (1, 0)
    assert Delivery.objects.count() == 1


def test_a_batch_is_bounded_and_the_oldest_come_first(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    first, second = box_of(owner), box_of(owner)

    assert fan_out(limit=1) == 1
    assert Delivery.objects.get().event.object_id == first.pk
    assert fan_out(limit=1) == 1
    assert {delivery.event.object_id for delivery in Delivery.objects.all()} == {first.pk, second.pk}


@pytest.mark.parametrize("number", [1, 12])
def test_the_deliveries_of_many_cost_no_more_queries(
    hook: Subscription, owner: User, box_of: BoxOf, number: int, django_assert_max_num_queries
) -> None:
    for _ in range(number):
        box_of(owner, stopped_at=timezone.now(), stop_reason="user_requested", state="archived")

    with django_assert_max_num_queries(12):
        fan_out()


def test_an_event_that_the_database_has_an_error_for_costs_no_other(
    hook: Subscription, owner: User, box_of: BoxOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = box_of(owner), box_of(owner)

    class Breaking(BoxSerializer):
        def to_representation(self, box: Box) -> Any:
            if box.pk == bad.pk:
                connection.cursor().execute("select 1/0")
            return super().to_representation(box)

    monkeypatch.setitem(rendering.SHOWN, "box", (Box, Breaking))

    assert fan_out() == 2

    told_of = {event.object_id: json.loads(event.payload or "")["data"] for event in Event.objects.all()}
    assert told_of[bad.pk] == {"id": str(bad.pk)}
    assert told_of[good.pk]["state"] == "provisioning"


def test_a_deleted_owners_webhooks_are_gone(hook: Subscription, owner: User) -> None:
    delete_user(owner)

    assert not Subscription.objects.exists()


def test_after_a_batch_that_failed_there_is_a_rest(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    box_of(owner)
    driver = EventDriver()
    (task,) = driver.claim(pump.Holder(), 1)

    driver.settle(pump.Holder(), [pump.Outcome(task, error=RuntimeError("broken"))])

    assert driver.claim(pump.Holder(), 1) == []
    assert driver.seconds_until_due()


@pytest.mark.django_db(transaction=True)
def test_several_workers_make_each_delivery_once(owner: User, receiver: Receiver, box_of: BoxOf) -> None:
    subscriptions.create(owner, url=receiver.url)
    for _ in range(12):
        box_of(owner)

    def work(_: int) -> None:
        while fan_out(limit=3):
            pass

    all_at_once(work, range(3))

    assert Delivery.objects.count() == Event.objects.count() == 12


@pytest.mark.django_db(transaction=True)
def test_the_pump_drives_events_and_their_deliveries(owner: User, receiver: Receiver, box_of: BoxOf) -> None:
    from openagents_site.registry import drivers

    secret = subscriptions.create(owner, url=receiver.url)[1]
    box_of(owner, stopped_at=timezone.now(), stop_reason="user_requested", state="archived")
    chosen = [driver for driver in drivers() if driver.name.startswith("webhook")]

    pump.run_once(chosen)

    assert [each.verified(secret)["type"] for each in receiver.received] == ["box.created"]
    assert EventDriver().seconds_until_due() is None
