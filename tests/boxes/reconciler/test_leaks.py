"""Boxes at the provider that no row claims: found, told, stopped once, and seen again when they come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base.clock import database_now
from base.sql import ClockTimestamp
from boxes import services
from boxes.ending import forget_box
from boxes.errors import Refused
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from conversations.models import Conversation
from tests.boxes.reconciler.conftest import Pair, again
from tests.boxes.writers.driving import drive, pass_time
from tests.fakes.provider import FakeProvider
from tests.fakes.world import OMITTED, FakeBox

pytestmark = pytest.mark.django_db


@pytest.fixture
def leak(provider: FakeProvider) -> FakeBox:
    """A box with our name that no row claims."""
    return provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)


def event() -> ReconciliationEvent:
    return ReconciliationEvent.objects.get(event_type="leak")


def time_goes_by(seconds: float) -> None:
    gone = timedelta(seconds=seconds)
    for found in ReconciliationEvent.objects.exclude(handled_at=None):
        ReconciliationEvent.objects.filter(pk=found.pk).update(handled_at=found.handled_at - gone)


def test_a_leak_is_stopped_and_told_once(leak: FakeBox, provider: FakeProvider) -> None:
    first = reconcile()
    second = reconcile()

    assert (first.leaks, first.leaks_stopped, second.leaks_stopped) == (1, 1, 0)
    assert (leak.stops, leak.is_billing) == (1, False)
    found = event()
    assert (found.provider_box_id, found.owned, found.resolution) == (leak.id, True, "stopped")
    assert found.stop_attempted_at is not None
    assert found.handled_at is not None
    assert found.details["id"] == leak.id


def test_an_archived_leak_is_never_stopped(leak: FakeBox, provider: FakeProvider) -> None:
    leak.state = "archived"
    provider.always("list", edit=lambda body: {**body, "boxes": [leak.document()]})

    for _ in range(3):
        reconcile()

    assert leak.stops == 0
    assert (event().resolution, event().handled_at is not None) == ("gone", True)


def test_a_leak_that_comes_back_is_told_anew_and_stopped_again(leak: FakeBox) -> None:
    reconcile()
    first = event()
    leak.state = "ready"
    reconcile()
    assert (leak.stops, event().reopened_at) == (1, None)  # a stop may take a while to show

    time_goes_by(301)
    reconcile()

    found = event()
    assert (leak.stops, found.observed_at) == (2, first.observed_at)
    assert found.reopened_at is not None
    assert (found.handled_at or first.observed_at) > found.reopened_at


def test_somebody_elses_box_is_told_and_left_running(provider: FakeProvider) -> None:
    theirs = provider.add_box("bx_foreign1", name="developer-box", age=3600)

    reconcile()
    reconcile()

    found = event()
    assert (found.owned, found.handled_at, found.stop_attempted_at) == (False, None, None)
    assert (found.last_seen_at or found.observed_at) > found.observed_at
    assert theirs.stops == 0


@pytest.mark.parametrize(
    "labels",
    [{"name": OMITTED}, {"name": None}, {"name": 7}, {"name": ["x"]}, {"name": "", "owner": {"a": 1}}],
)
def test_an_entry_with_an_odd_name_is_counted_and_never_killed(provider: FakeProvider, labels: Any) -> None:
    odd = provider.add_box("bx_99999999", age=3600, extra=labels)

    assert reconcile().leaks == 1
    assert odd.stops == 0


def test_a_leak_on_a_late_page_is_found_in_one_pass(provider: FakeProvider) -> None:
    provider.add_boxes(120, name="theirs")
    leak = provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)
    provider.add_boxes(120, name="theirs")

    result = reconcile()

    assert (result.provider_boxes, result.leaks_stopped) == (241, 1)
    assert leak.stops == 1
    assert provider.count("list") == 2


def test_a_leak_that_is_gone_is_closed(leak: FakeBox, provider: FakeProvider) -> None:
    leak.name = "theirs"
    reconcile()
    provider.boxes.pop(leak.id)
    reconcile()

    assert event().resolution == "gone"


def test_a_leak_that_was_gone_and_is_back_is_told_anew_at_once(leak: FakeBox, provider: FakeProvider) -> None:
    leak.name = "theirs"
    reconcile()
    provider.boxes.pop(leak.id)
    reconcile()
    provider.boxes[leak.id] = leak
    reconcile()

    assert (event().handled_at, event().reopened_at is not None) == (None, True)


def test_a_young_box_with_our_name_is_given_time(leak: FakeBox) -> None:
    leak.created_at = database_now()
    assert reconcile().leaks == 0

    leak.created_at = database_now() - timedelta(seconds=61)
    assert reconcile().leaks_stopped == 1


def test_a_box_without_a_time_is_stopped_in_the_first_pass(leak: FakeBox) -> None:
    leak.extra = {"createdAt": OMITTED}

    assert reconcile().leaks_stopped == 1


def test_an_adopted_row_is_no_leak_any_more(leak: FakeBox, make_row: Pair) -> None:
    leak.name = "theirs"
    reconcile()
    row = make_row(leak.id)
    reconcile()

    assert (event().resolution, event().box) == ("adopted", row)


@pytest.mark.parametrize("box_id", ["x" * 201, "x" * 255, "x" * 5000, "y" * 200 + "z" * 100])
def test_ids_that_are_too_long_are_told_too(provider: FakeProvider, box_id: str) -> None:
    ours = provider.add_box(box_id, name=provider_ownership_marker(), age=3600)
    other = provider.add_box(box_id[:-1] + "w", name="theirs", age=3600)

    reconcile()
    reconcile()

    assert ReconciliationEvent.objects.count() == 2
    assert ours.stops == (1 if len(box_id) <= 255 else 0)
    assert other.stops == 0
    handled = ReconciliationEvent.objects.exclude(handled_at=None).count()
    assert handled == (1 if len(box_id) <= 255 else 0)


def test_what_is_kept_of_an_entry_is_bounded_and_storable(provider: FakeProvider) -> None:
    odd = {"note": "\x00\ud800", "deep": [{"a": [1.5, None]}], "desktopUrl": "https://secret"}
    provider.add_box("bx_22222222", name="theirs", age=60, extra=odd)
    provider.add_box("bx_22222223", name="n" * 3000, age=60, extra={"padding": "x" * 40_000})

    reconcile()

    small, large = (
        ReconciliationEvent.objects.get(provider_box_id=box_id).details
        for box_id in ("bx_22222222", "bx_22222223")
    )
    assert (small["note"], small["desktopUrl"]) == ("\ufffd\ufffd", "[REDACTED]")
    assert (large["truncated"], large["name"], "padding" in large) == (True, "n" * 1024, False)


def test_an_entry_that_the_database_refuses_costs_only_itself(provider: FakeProvider, leak: FakeBox) -> None:
    provider.add_box("bx_22222222", name="theirs", age=60)
    with connection.cursor() as cursor:
        cursor.execute(
            "create function refuse_leak() returns trigger language plpgsql as"
            " $$ begin if new.provider_box_id = 'bx_22222222' then raise exception 'not this one'; end if;"
            " return new; end $$"
        )
        cursor.execute(
            "create trigger refuse_leak before insert on box_reconciliation_events for each row"
            " execute function refuse_leak()"
        )

    assert reconcile().leaks_stopped == 1
    assert event().provider_box_id == leak.id


# stops of leaks that fail


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 403}, {"drop_before": True}, {"html": True}, {"status": 401}]
)
def test_a_leak_that_cannot_be_stopped_stays_open_and_is_tried_again(
    leak: FakeBox, provider: FakeProvider, fault: dict[str, Any]
) -> None:
    provider.next("stop", **fault)

    assert (reconcile().leaks_stopped, reconcile().leaks_stopped) == (0, 1)
    assert event().resolution == "stopped"


def test_leaks_wait_while_the_provider_wants_to_be_left_alone(provider: FakeProvider) -> None:
    leaks = [
        provider.add_box(f"bx_9999999{digit}", name=provider_ownership_marker(), age=3600)
        for digit in "23456"
    ]
    provider.always("stop", status=429, retry_after=120)

    result = reconcile()

    assert (result.leaks_stopped, result.failed, provider.count("stop")) == (0, 0, 1)
    assert all(leak.is_billing for leak in leaks)
    assert ReconciliationEvent.objects.filter(handled_at=None, stopping_until=None).count() == 5


def test_a_box_that_is_gone_when_it_is_stopped_is_handled(leak: FakeBox, provider: FakeProvider) -> None:
    def vanish(_request: Any) -> bool:
        provider.boxes.pop(leak.id, None)
        return False

    provider.always("stop", when=vanish)

    assert reconcile().leaks_stopped == 1


def test_a_box_that_can_never_be_stopped_can_be_forgotten_and_stays_a_leak(
    pair: Pair, provider: FakeProvider, staff: Any
) -> None:
    box = pair(age=3601, refuse_stop="forbidden")
    reconcile()
    assert again(box).reconciliation_error == "box_billing_required"
    with pytest.raises(Refused):
        services.stop_box(box.conversation_id, str(box.pk))

    forget_box(box, by=staff)
    for _ in range(3):
        reconcile()

    row = again(box)
    assert (row.stop_reason, row.settled_cost_microusd) == ("forgotten", None)
    found = event()
    assert (found.event_type, found.handled_at, found.owned) == ("leak", None, True)
    assert provider.billing() != []


# boxes under creation


def test_an_unnamed_box_is_not_told_while_a_creation_is_not_answered(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", drop_after=True)
    box = services.create_box(conversation.id)
    assert again(box).box_id is None

    assert reconcile().leaks == 0

    pass_time(10)
    drive()
    assert again(box).box_id is not None
    assert reconcile().leaks == 0
    assert len(provider.existing()) == 1


def test_a_creation_that_was_never_asked_for_hides_nothing(make_row: Pair, provider: FakeProvider) -> None:
    make_row(None, state="provisioning", create_key="key-1")
    provider.add_box("bx_22222222", name="theirs", age=60)

    assert reconcile().leaks == 1


def test_a_creation_that_was_never_answered_hides_no_older_box(
    make_row: Pair, provider: FakeProvider
) -> None:
    now = database_now()
    make_row(None, state="provisioning", create_key="key-1", create_attempts=3, create_attempted_at=now)
    provider.add_box("bx_22222222", name="theirs", age=3600)
    provider.add_box("bx_22222223", name="theirs", age=70)

    assert reconcile().leaks == 1
    assert event().provider_box_id == "bx_22222222"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("step", ["create", "patch"])
@pytest.mark.parametrize("after", [False, True])
def test_a_box_that_is_being_created_is_never_a_leak(
    conversation: Conversation,
    provider: FakeProvider,
    box_api: Callable[..., None],
    step: str,
    after: bool,
) -> None:
    box_api(reconcile_evidence="list")
    made: list[Box] = []

    def create() -> None:
        try:
            made.append(services.create_box(conversation.id))
        finally:
            connection.close()

    with provider.hold(step, after=after) as hold:
        creating = threading.Thread(target=create)
        creating.start()
        hold.wait_until_arrived()
        results = [reconcile() for _ in range(3)]
    creating.join()
    results += [reconcile() for _ in range(2)]

    assert [result.leaks for result in results] == [0] * 5
    assert not ReconciliationEvent.objects.exists()
    assert provider.count("stop") == 0
    assert again(made[0]).stopped_at is None


def test_a_box_whose_row_was_closed_before_its_creation_was_answered_is_stopped(
    conversation: Conversation, provider: FakeProvider, staff: Any
) -> None:
    provider.next("create", drop_after=True)
    box = services.create_box(conversation.id)
    services.stop_box(conversation.id, str(box.pk))
    pass_time(10)
    drive()

    assert again(box).stop_reason == "user_requested"
    assert provider.billing() == []
    assert reconcile().leaks == 0


# staff and a pass at the same time


def test_a_leak_that_somebody_is_stopping_is_left_to_them(leak: FakeBox, provider: FakeProvider) -> None:
    leak.refuse_stop = "stop_failed"
    reconcile()
    leak.refuse_stop, stops = None, leak.stops
    ReconciliationEvent.objects.update(stopping_until=ClockTimestamp() + timedelta(seconds=60))
    assert reconcile().leaks_stopped == 0
    assert leak.stops == stops

    ReconciliationEvent.objects.update(stopping_until=ClockTimestamp() - timedelta(seconds=1))
    assert reconcile().leaks_stopped == 1
