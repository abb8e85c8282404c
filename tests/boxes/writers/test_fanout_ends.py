"""How what waits of a plan ends: stopped, cancelled, or with its owner."""

from __future__ import annotations

import pytest

from accounts.models import User
from accounts.services import delete_user
from base.clock import database_now
from boxes import fanout, services
from boxes.models import Box
from boxes.states import ItemState
from conversations.models import Conversation
from conversations.services import delete_conversation
from tests.boxes.writers.driving import drive, run_driver
from tests.boxes.writers.plans import admit, pass_queue_time, reasons, states
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_stopping_a_planned_box_before_anybody_asked_for_it_makes_nothing(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 3)
    stopped = services.stop_box(conversation.id, "box-1")
    drive()

    assert (stopped.stop_reason, stopped.settled_cost_microusd) == ("user_requested", 0)
    assert len(provider.existing()) == 2
    assert states(request) == ["admitted"] * 3  # the place went on


def test_cancelling_ends_what_waits_and_keeps_what_was_admitted(conversation: Conversation) -> None:
    request = fanout.cancel(admit(conversation, 4))

    assert states(request) == ["admitted", "admitted", "refused", "refused"]
    assert reasons(request) == [None, None, "cancelled", "cancelled"]
    assert (request.state, request.queued_count) == ("admitted", 0)
    assert request.cancelled_at is not None
    assert fanout.cancel(request).cancelled_at == request.cancelled_at


def test_a_cancelled_item_is_not_promoted_and_its_label_is_free(conversation: Conversation) -> None:
    fanout.cancel(admit(conversation, 3, labels=["a", "b", "c"]))
    Box.objects.update(stopped_at=database_now())

    assert fanout.promote_queued() == 0
    assert states(admit(conversation, 1, labels=["c"])) == ["admitted"]


@pytest.mark.parametrize("cancelled", [True, False])
def test_what_the_provider_refuses_of_a_cancelled_plan_does_not_wait_again(
    conversation: Conversation, provider: FakeProvider, cancelled: bool
) -> None:
    request = admit(conversation, 2)
    if cancelled:
        fanout.cancel(request)
    provider.always("create", status=402, code="billing_required")
    run_driver()
    pass_queue_time(3600)

    assert fanout.promote_queued() == (0 if cancelled else 2)
    assert reasons(request) == (["cancelled"] * 2 if cancelled else [None] * 2)
    assert Box.objects.count() == (0 if cancelled else 2)


def test_a_deleted_owner_has_nothing_waiting(conversation: Conversation, owner: User) -> None:
    request = admit(conversation, 4)

    delete_user(owner)

    assert ItemState.QUEUED not in states(request)
    assert fanout.promote_queued() == 0


def test_a_conversation_deleted_meanwhile_is_passed_over(conversation: Conversation) -> None:
    admit(conversation, 3)
    Conversation.objects.update(deleted_at=database_now())

    assert fanout.promote_queued() == 0


def test_a_deletion_through_the_service_ends_the_queue(conversation: Conversation) -> None:
    request = admit(conversation, 3)
    delete_conversation(conversation)

    assert reasons(request)[-1] == "owner_deleted"
