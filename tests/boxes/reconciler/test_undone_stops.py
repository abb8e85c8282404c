"""Stops that the provider took and undid: seen twice, a while after the stop, the box is stopped again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from base.clock import database_now
from boxes import services
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider
from tests.fakes.world import FakeBox

pytestmark = pytest.mark.django_db
BOX_ID = "bx_8bhkse3n"


@pytest.fixture
def undone(provider: FakeProvider, make_row: Pair) -> Box:
    """A row that was stopped ten minutes ago, and whose box is up."""
    provider.add_box(BOX_ID, name=provider_ownership_marker(), age=3600)
    return stopped(make_row, 600)


def stopped(make_row: Pair, seconds: float) -> Box:
    return make_row(
        BOX_ID,
        age=3600,
        state="archiving",
        stopped_at=database_now() - timedelta(seconds=seconds),
        stop_reason="user_requested",
        lifetime_seconds=3000,
        next_settlement_at=database_now() + timedelta(days=1),
    )


def at_provider(provider: FakeProvider) -> FakeBox:
    return provider.boxes[BOX_ID]


def test_it_is_stopped_again_at_the_second_sighting(undone: Box, provider: FakeProvider) -> None:
    first, second = reconcile(), reconcile()

    assert (first.undone, second.undone) == (0, 1)
    assert at_provider(provider).stops == 1
    event = ReconciliationEvent.objects.get()
    assert (event.event_type, event.box, event.resolution) == ("stop_undone", undone, "stopped")


def test_the_row_stays_stopped_and_is_settled_after_the_second_stop(undone: Box) -> None:
    reconcile()
    reconcile()

    row = again(undone)
    assert (row.stopped_at, row.stop_reason, row.lifetime_seconds) == (
        undone.stopped_at,
        "user_requested",
        3000,
    )
    assert row.next_settlement_at is not None
    assert (row.next_settlement_at - database_now()).total_seconds() == pytest.approx(60, abs=5)
    assert row.undone_sightings == 0


def test_a_provider_that_undoes_a_stop_by_itself(pair: Pair, provider: FakeProvider) -> None:
    box = pair(undo_stop_after=0)
    services.stop_box(box.conversation_id, str(box.pk))
    for _ in range(3):
        reconcile()
    assert at_provider(provider).stops == 1  # the stop is too fresh to be doubted

    Box.objects.update(undone_sightings=0)
    provider.boxes[BOX_ID].undo_stop_after = None
    make_older(again(box), 301)
    reconcile()
    reconcile()

    assert at_provider(provider).stops == 2
    assert not at_provider(provider).is_billing


def make_older(box: Box, seconds: float) -> None:
    """Let the stop be so much longer ago; nothing but a test could write that."""
    with connection.cursor() as cursor:
        cursor.execute("set constraints all immediate")
        cursor.execute("alter table conversation_boxes disable trigger user")
        cursor.execute(
            "update conversation_boxes set stopped_at = stopped_at - make_interval(secs => %s) where id = %s",
            [seconds, box.pk],
        )
        cursor.execute("alter table conversation_boxes enable trigger user")


def test_one_sighting_is_not_enough(undone: Box, provider: FakeProvider) -> None:
    reconcile()
    at_provider(provider).state = "archiving"
    reconcile()
    at_provider(provider).state = "ready"
    reconcile()

    assert at_provider(provider).stops == 0
    assert again(undone).undone_sightings == 1


@pytest.mark.parametrize("state", ["provisioning", "archiving", "error", "limbo"])
def test_only_a_box_that_is_up_counts(undone: Box, provider: FakeProvider, state: str) -> None:
    at_provider(provider).state = state
    for _ in range(3):
        reconcile()

    assert at_provider(provider).stops == 0


def test_a_stop_that_was_just_made_is_not_doubted(make_row: Pair, provider: FakeProvider) -> None:
    provider.add_box(BOX_ID, name=provider_ownership_marker(), age=3600)
    stopped(make_row, 290)
    for _ in range(3):
        reconcile()

    assert at_provider(provider).stops == 0


def test_a_settled_row_is_stopped_again_too(undone: Box, provider: FakeProvider) -> None:
    Box.objects.update(usage_settled_at=database_now(), settled_cost_microusd=5, next_settlement_at=None)

    reconcile()

    assert reconcile().undone == 1
    assert (again(undone).settled_cost_microusd, again(undone).next_settlement_at) == (5, None)


def test_a_second_stop_that_fails_is_tried_again_and_stays_open(undone: Box, provider: FakeProvider) -> None:
    at_provider(provider).refuse_stop = "stop_failed"
    reconcile()
    result = reconcile()
    assert (result.undone, result.failed, result.incomplete) == (0, 1, True)
    assert ReconciliationEvent.objects.get().handled_at is None

    at_provider(provider).refuse_stop = None
    assert reconcile().undone == 1
    assert ReconciliationEvent.objects.get().resolution == "stopped"


def test_a_box_that_comes_up_a_third_time_opens_the_event_again(undone: Box, provider: FakeProvider) -> None:
    reconcile()
    reconcile()
    at_provider(provider).state = "ready"
    reconcile()
    assert reconcile().undone == 1

    event = ReconciliationEvent.objects.get()
    assert event.reopened_at is not None
    assert at_provider(provider).stops == 2


def test_a_box_that_was_written_off_by_mistake_is_stopped(make_row: Pair, provider: FakeProvider) -> None:
    row = make_row(BOX_ID, age=3600)
    reconcile()
    assert again(row).stop_reason == "provider_missing"

    provider.add_box(BOX_ID, name=provider_ownership_marker(), age=3600)
    make_older(again(row), 301)
    reconcile()

    assert reconcile().undone == 1
    assert again(row).stop_reason == "provider_missing"
