"""Plans of several boxes: decided at once, created by the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from accounts.models import User
from base.clock import database_now
from boxes import fanout, services
from boxes.errors import BoxNotFound, InvalidRequest, LabelTaken
from boxes.models import Box, FanoutItem, FanoutRequest
from conversations.models import Conversation
from conversations.services import ConversationNotFound
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import drive
from tests.boxes.writers.plans import PRINCIPAL, admit, reasons, states
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_it_decides_every_item_at_once_and_asks_nobody(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 3)

    assert states(request) == ["admitted", "admitted", "queued"]
    assert reasons(request) == [None, None, "conversation_active_limit"]
    assert (request.state, request.admitted_count, request.queued_count) == ("queued", 2, 1)
    assert Box.objects.filter(stopped_at=None).count() == 2  # places are held from here on
    assert provider.count() == 0


def test_the_worker_creates_what_was_admitted(conversation: Conversation, provider: FakeProvider) -> None:
    request = admit(conversation, 2)
    drive()

    boxes = [item.box for item in request.items.order_by("position")]
    assert [box.label for box in boxes] == ["box-1", "box-2"]
    assert [box.state for box in boxes] == ["ready", "ready"]
    assert {box.box_id for box in boxes} == {made.id for made in provider.existing()}
    assert {made.name for made in provider.existing()} == {services.provider_ownership_marker()}


def test_a_plan_that_fits_is_admitted_whole(conversation: Conversation) -> None:
    request = admit(conversation, 2)

    assert (request.state, request.admitted_count, request.queued_count) == ("admitted", 2, 0)


def test_it_keeps_the_limits_under_which_it_was_decided(conversation: Conversation, owner: User) -> None:
    request = admit(conversation, 3, budgeted=True)

    assert request.budgeted
    assert request.effective_limits == {
        "conversation_active_limit": 10,
        "owner_active_limit": 4,
        "global_active_limit": 20,
        "conversation_burn_rate_ceiling_microusd": 1_000_000,
        "owner_burn_rate_ceiling_microusd": 5_000_000,
        "estimated_burn_rate_per_box_hour_microusd": 100_000,
        "budgeted": True,
        "budgeted_by": PRINCIPAL,
        "owner_id": str(owner.pk),
    }


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("default_maximum_active_boxes", 1, "conversation_active_limit"),
        ("maximum_active_boxes_per_owner", 1, "owner_active_limit"),
        ("maximum_active_boxes_global", 1, "global_active_limit"),
        ("maximum_burn_rate_per_conversation_microusd", 150_000, "conversation_burn_rate_ceiling"),
        ("maximum_burn_rate_per_owner_microusd", 150_000, "owner_burn_rate_ceiling"),
    ],
)
def test_an_item_says_why_it_waits(
    conversation: Conversation, box_api: Callable[..., None], setting: str, value: int, reason: str
) -> None:
    box_api(**{setting: value})

    assert reasons(admit(conversation, 2)) == [None, reason]


@pytest.mark.parametrize("count", [0, 101, -1, True, 1.5, "2", None])
def test_what_is_no_count_is_refused(conversation: Conversation, count: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        admit(conversation, count)

    assert refused.value.code == "invalid_box_count"
    assert not FanoutRequest.objects.exists()


def test_labels_may_be_chosen(conversation: Conversation) -> None:
    request = admit(conversation, 3, labels=["web", " db ", "queue"])

    assert list(request.items.order_by("position").values_list("label", flat=True)) == ["web", "db", "queue"]


def test_a_label_in_use_is_refused_and_nothing_is_planned(
    conversation: Conversation, make_box: MakeBox
) -> None:
    make_box("bx_1", label="web")

    with pytest.raises(LabelTaken):
        admit(conversation, 2, labels=["db", "web"])

    assert not FanoutItem.objects.exists()


def test_a_label_that_waits_is_in_use(conversation: Conversation, provider: FakeProvider) -> None:
    admit(conversation, 3, labels=["a", "b", "waiting"])

    with pytest.raises(LabelTaken):
        admit(conversation, 1, labels=["waiting"])
    Box.objects.filter(label="a").update(stopped_at=database_now())
    with pytest.raises(LabelTaken):
        services.create_box(conversation.id, label="waiting")


def test_a_label_is_free_again_when_its_box_stops(conversation: Conversation, provider: FakeProvider) -> None:
    admit(conversation, 1, labels=["web"])
    drive()
    services.stop_box(conversation.id, "web")

    assert states(admit(conversation, 1, labels=["web"])) == ["admitted"]


def test_a_missing_conversation_has_no_plans() -> None:
    with pytest.raises(ConversationNotFound):
        fanout.admit(uuid4(), PRINCIPAL, 1)


def test_a_plan_is_found_by_its_conversation_only(
    conversation: Conversation, other_conversation: Conversation
) -> None:
    request = admit(conversation, 1)

    assert fanout.get_request(conversation.id, request.pk) == request
    with pytest.raises(BoxNotFound) as refused:
        fanout.get_request(other_conversation.id, request.pk)
    assert refused.value.code == "fanout_not_found"


def test_two_items_cannot_hold_one_label(conversation: Conversation) -> None:
    item = admit(conversation, 3, labels=["a", "b", "c"]).items.get(label="c")

    with pytest.raises(IntegrityError, match="box_fanout_items_active_label_index"), transaction.atomic():
        FanoutItem.objects.create(
            request=item.request,
            conversation=conversation,
            position=9,
            queue_sequence=9,
            label="c",
            requesting_principal=PRINCIPAL,
        )
