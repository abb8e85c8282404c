"""What staff do about a leak: each is recorded with who and when, and none gets in the way of a pass or of another."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base.clock import database_now
from base.sql import ClockTimestamp
from boxes import budgets, leaks
from boxes.errors import BoxNotFound, InvalidRequest, LabelTaken, LeakBusy, LeakHandled, ProviderError
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from conversations.models import Conversation
from conversations.services import ConversationNotFound
from tests.boxes.reconciler.conftest import Pair
from tests.fakes.provider import FakeProvider
from tests.fakes.world import FakeBox

pytestmark = pytest.mark.django_db


@pytest.fixture
def theirs(provider: FakeProvider) -> FakeBox:
    return provider.add_box("bx_99999999", name="developer-box", age=3600)


@pytest.fixture
def leak(theirs: FakeBox) -> ReconciliationEvent:
    """Somebody else's box, reported by a pass."""
    reconcile()
    return ReconciliationEvent.objects.get()


def now(leak: ReconciliationEvent) -> ReconciliationEvent:
    return ReconciliationEvent.objects.get(pk=leak.pk)


def test_staff_stop_a_leak_whoevers_it_is(leak: ReconciliationEvent, theirs: FakeBox, staff: Any) -> None:
    handled = leaks.stop_leak(leak, by=staff)

    assert (handled.resolution, handled.handled_by, theirs.stops) == ("stopped", staff, 1)
    assert handled.stop_attempted_at is not None
    assert handled.stopping_until is None


def test_a_stop_that_fails_is_noted_and_the_leak_stays_open(
    leak: ReconciliationEvent, theirs: FakeBox, staff: Any
) -> None:
    theirs.refuse_stop = "forbidden"

    with pytest.raises(ProviderError):
        leaks.stop_leak(leak, by=staff)

    row = now(leak)
    assert (row.handled_at, row.resolution, row.stopping_until) == (None, None, None)
    assert row.stop_attempted_at is not None


def test_a_dismissed_leak_is_not_told_anew(leak: ReconciliationEvent, theirs: FakeBox, staff: Any) -> None:
    leaks.dismiss_leak(leak, by=staff)
    reconcile()

    row = now(leak)
    assert (row.resolution, row.handled_by, row.reopened_at) == ("dismissed", staff, None)
    assert theirs.stops == 0


def test_a_dismissed_leak_of_ours_is_not_stopped(provider: FakeProvider, staff: Any) -> None:
    ours = provider.add_box(
        "bx_99999999", name=provider_ownership_marker(), age=3600, refuse_stop="forbidden"
    )
    reconcile()
    leaks.dismiss_leak(ReconciliationEvent.objects.get(), by=staff)
    stops = ours.stops
    reconcile()

    assert ours.stops == stops


def test_an_adopted_box_lives_on_as_any_other(
    leak: ReconciliationEvent, theirs: FakeBox, conversation: Conversation, staff: Any
) -> None:
    adopted = leaks.adopt_leak(leak, conversation.id, by=staff, label="found")

    box = Box.objects.get()
    assert (adopted.resolution, adopted.handled_by, adopted.box) == ("adopted", staff, box)
    assert (box.box_id, box.label, box.conversation, box.create_key) == (
        theirs.id,
        "found",
        conversation,
        None,
    )
    assert (theirs.name, theirs.ttl_seconds) == (provider_ownership_marker(), 3600)


@pytest.mark.parametrize("box_id", ["http://elsewhere/x", "..", "bx_" + "y" * 200, "x" * 5000])
def test_a_box_that_could_never_be_stopped_is_not_adopted(
    provider: FakeProvider, conversation: Conversation, staff: Any, box_id: str
) -> None:
    provider.add_box(box_id, name="developer-box", age=3600)
    reconcile()

    with pytest.raises(ProviderError) as refused:
        leaks.adopt_leak(ReconciliationEvent.objects.get(), conversation.id, by=staff)

    assert refused.value.code == "box_malformed_id"
    assert not Box.objects.exists()
    assert ReconciliationEvent.objects.get().handled_at is None


def test_an_adopted_box_counts_with_the_estimate_in_force(
    leak: ReconciliationEvent, conversation: Conversation, staff: Any, owner: Any
) -> None:
    leaks.adopt_leak(leak, conversation.id, by=staff)
    Box.objects.update(created_at=database_now() - timedelta(hours=2))

    assert Box.objects.get().estimated_burn_rate_microusd == 100_000
    assert budgets.spent_this_month(owner.pk) >= 200_000


def test_an_adopted_box_is_stopped_when_its_time_is_up(
    leak: ReconciliationEvent, theirs: FakeBox, conversation: Conversation, staff: Any
) -> None:
    leaks.adopt_leak(leak, conversation.id, by=staff)
    reconcile()
    assert (Box.objects.get().state, Box.objects.get().label) == ("ready", "box-1")

    Box.objects.update(created_at=database_now() - timedelta(seconds=3601))
    reconcile()

    assert Box.objects.get().stop_reason == "ttl_expired"
    assert not theirs.is_billing


def test_a_box_that_cannot_be_named_is_adopted_and_shown_as_under_another_name(
    leak: ReconciliationEvent, conversation: Conversation, provider: FakeProvider, staff: Any
) -> None:
    provider.next("patch", status=500)

    leaks.adopt_leak(leak, conversation.id, by=staff)
    reconcile()

    assert Box.objects.count() == 1
    assert ReconciliationEvent.objects.filter(event_type="marker_missing", handled_at=None).count() == 1


@pytest.mark.parametrize("action", ["stop", "dismiss", "adopt"])
@pytest.mark.parametrize("first", ["stop", "dismiss", "adopt"])
def test_a_leak_is_handled_once(
    leak: ReconciliationEvent, conversation: Conversation, staff: Any, first: str, action: str
) -> None:
    act = {
        "stop": lambda: leaks.stop_leak(leak, by=staff),
        "dismiss": lambda: leaks.dismiss_leak(leak, by=staff),
        "adopt": lambda: leaks.adopt_leak(leak, conversation.id, by=staff),
    }
    act[first]()

    with pytest.raises(LeakHandled):
        act[action]()
    assert Box.objects.count() == (1 if first == "adopt" else 0)


@pytest.mark.parametrize("action", ["stop", "dismiss", "adopt"])
def test_a_leak_that_is_being_stopped_is_left_alone(
    leak: ReconciliationEvent, conversation: Conversation, theirs: FakeBox, staff: Any, action: str
) -> None:
    ReconciliationEvent.objects.update(stopping_until=ClockTimestamp() + timedelta(seconds=60))

    with pytest.raises(LeakBusy):
        {
            "stop": lambda: leaks.stop_leak(leak, by=staff),
            "dismiss": lambda: leaks.dismiss_leak(leak, by=staff),
            "adopt": lambda: leaks.adopt_leak(leak, conversation.id, by=staff),
        }[action]()

    assert (theirs.stops, Box.objects.count(), now(leak).handled_at) == (0, 0, None)


def test_a_leak_whose_box_has_a_row_by_now_cannot_be_stopped_nor_adopted(
    leak: ReconciliationEvent, conversation: Conversation, theirs: FakeBox, make_row: Pair, staff: Any
) -> None:
    make_row(theirs.id)

    with pytest.raises(LeakHandled):
        leaks.stop_leak(leak, by=staff)
    with pytest.raises(LeakHandled):
        leaks.adopt_leak(leak, conversation.id, by=staff)
    assert theirs.stops == 0


@pytest.mark.parametrize(
    ("label", "error"), [("taken", LabelTaken), ("", InvalidRequest), ("x" * 129, InvalidRequest)]
)
def test_a_label_that_cannot_be_given_adopts_nothing(
    leak: ReconciliationEvent,
    conversation: Conversation,
    make_row: Pair,
    staff: Any,
    label: str,
    error: type[Exception],
) -> None:
    make_row("bx_22222222", label="taken")

    with pytest.raises(error):
        leaks.adopt_leak(leak, conversation.id, by=staff, label=label)
    assert now(leak).handled_at is None


def test_a_conversation_that_is_not_there_adopts_nothing(
    leak: ReconciliationEvent, conversation: Conversation, staff: Any
) -> None:
    Conversation.objects.update(deleted_at=database_now())

    for wanted in (conversation.id, leak.pk):
        with pytest.raises(ConversationNotFound):
            leaks.adopt_leak(leak, wanted, by=staff)
    assert now(leak).handled_at is None


def test_a_leak_that_is_not_there_is_not_found(leak: ReconciliationEvent, conversation: Conversation) -> None:
    with pytest.raises(BoxNotFound) as raised:
        leaks.find_leak(conversation.id)

    assert raised.value.code == "leak_not_found"
    assert leaks.find_leak(leak.pk) == leak


def test_an_id_too_long_to_be_a_key_is_stopped_by_its_own_name(provider: FakeProvider, staff: Any) -> None:
    theirs = provider.add_box("x" * 250, name="theirs", age=3600)
    reconcile()

    leaks.stop_leak(ReconciliationEvent.objects.get(), by=staff)

    assert theirs.stops == 1


@pytest.mark.django_db(transaction=True)
def test_a_box_that_is_adopted_while_a_pass_is_about_to_stop_it_is_not_stopped(
    provider: FakeProvider, conversation: Conversation, staff: Any
) -> None:
    ours = provider.add_box(
        "bx_99999999", name=provider_ownership_marker(), age=3600, refuse_stop="forbidden"
    )
    reconcile()
    ours.refuse_stop, ours.stops = None, 0
    leak = ReconciliationEvent.objects.get()
    passing = threading.Thread(target=_pass)

    with provider.hold("list", after=True) as hold:
        passing.start()
        hold.wait_until_arrived()
        leaks.adopt_leak(leak, conversation.id, by=staff)
    passing.join()

    assert ours.stops == 0
    assert Box.objects.get().stopped_at is None


def _pass() -> None:
    try:
        reconcile()
    finally:
        connection.close()
