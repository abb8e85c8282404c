"""What waits of a plan is promoted fairly, and nothing that cannot be holds up the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.services import upsert_github_user
from base.clock import database_now
from boxes import fanout, services
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.tasks import promote_fanouts
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import drive
from tests.boxes.writers.plans import admit, reasons, states
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_a_stop_gives_the_place_to_the_oldest_that_waits(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 4)
    drive()
    services.stop_box(conversation.id, "box-1")

    assert states(request) == ["admitted", "admitted", "admitted", "queued"]
    assert Box.objects.get(label="box-3").next_provision_at is not None


def test_a_place_that_became_free_elsewhere_promotes_too(
    conversation: Conversation,
    other_conversation: Conversation,
    make_box: MakeBox,
    box_api: Callable[..., None],
) -> None:
    box_api(maximum_active_boxes_global=1)
    other = make_box("bx_1", conversation=other_conversation)
    request = admit(conversation, 1)
    assert reasons(request) == ["global_active_limit"]

    Box.objects.filter(pk=other.pk).update(stopped_at=database_now())  # nobody told the queue
    promote_fanouts()

    assert states(request) == ["admitted"]
    request.refresh_from_db()
    assert (request.state, request.queued_count) == ("admitted", 0)


def test_promotion_uses_the_plans_own_budget_flag(
    conversation: Conversation, box_api: Callable[..., None], make_box: MakeBox
) -> None:
    box_api(maximum_active_boxes_per_owner=2)
    blocker = make_box("bx_1")
    request = admit(conversation, 3, budgeted=True)
    assert reasons(request) == [None, "owner_active_limit", "owner_active_limit"]

    Box.objects.filter(pk=blocker.pk).update(stopped_at=database_now())
    box_api(default_maximum_active_boxes=1)  # would hold up a plan that is not budgeted
    fanout.promote_queued()

    assert states(request) == ["admitted", "admitted", "queued"]


def test_one_that_is_full_does_not_hold_up_another(
    conversation: Conversation, other_conversation: Conversation
) -> None:
    mine = admit(conversation, 4)
    theirs = admit(other_conversation, 3)
    Box.objects.filter(conversation=other_conversation, label="box-1").update(stopped_at=database_now())

    assert fanout.promote_queued() == 1

    assert states(mine) == ["admitted", "admitted", "queued", "queued"]
    assert states(theirs) == ["admitted", "admitted", "admitted"]


def test_owners_take_turns(box_api: Callable[..., None], db: None) -> None:
    box_api(maximum_active_boxes_global=0)
    first, second, third = (
        ensure_conversation(upsert_github_user(github_id=n, github_login=f"user-{n}")) for n in range(10, 13)
    )
    greedy, modest, late = admit(first, 5), admit(second, 1), admit(third, 2)
    box_api(maximum_active_boxes_global=4, default_maximum_active_boxes=10, maximum_active_boxes_per_owner=10)

    fanout.promote_queued()

    assert [states(request).count("admitted") for request in (greedy, modest, late)] == [2, 1, 1]


def test_places_that_become_free_one_by_one_go_to_the_owners_in_turn(
    conversation: Conversation, other_conversation: Conversation, box_api: Callable[..., None]
) -> None:
    box_api(maximum_active_boxes_global=1)
    greedy, modest = admit(conversation, 3), admit(other_conversation, 2)

    turns = [next_to_have_the_place() for _ in range(4)]

    assert turns == [modest.conversation_id, greedy.conversation_id] * 2


def next_to_have_the_place() -> Any:
    """Whose turn it is when the one place of the installation becomes free."""
    Box.objects.filter(stopped_at=None).update(stopped_at=database_now())
    fanout.promote_queued()
    return Box.objects.get(stopped_at=None).conversation_id


def test_what_waits_without_a_budget_does_not_hold_up_what_waits_with_one(
    conversation: Conversation, box_api: Callable[..., None]
) -> None:
    box_api(default_maximum_active_boxes=1, maximum_active_boxes_global=1)
    plain, budgeted = admit(conversation, 2), admit(conversation, 1, budgeted=True)
    box_api(maximum_active_boxes_global=20)

    assert fanout.promote_queued() == 1
    assert (states(plain), states(budgeted)) == (["admitted", "queued"], ["admitted"])


def test_an_item_keeps_its_place_however_often_it_is_tried(
    conversation: Conversation, box_api: Callable[..., None]
) -> None:
    box_api(default_maximum_active_boxes=0)
    admit(conversation, 1)
    before = FanoutItem.objects.values("queue_sequence", "queued_at").get()
    for _ in range(3):
        fanout.promote_queued()

    assert FanoutItem.objects.values("queue_sequence", "queued_at").get() == before


def test_a_reason_that_changed_is_shown(conversation: Conversation, box_api: Callable[..., None]) -> None:
    box_api(default_maximum_active_boxes=0)
    request = admit(conversation, 1)
    box_api(default_maximum_active_boxes=2, maximum_active_boxes_global=0)
    fanout.promote_queued()

    assert reasons(request) == ["global_active_limit"]


def test_one_item_that_cannot_be_promoted_costs_only_itself(
    conversation: Conversation, other_conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxes.fanout import queue

    bad, good = admit(conversation, 3), admit(other_conversation, 3)
    Box.objects.update(stopped_at=database_now())
    admit_item = queue._admit_item

    def broken(tenant: Any, request: FanoutRequest, item: FanoutItem) -> None:
        if request == bad:
            raise ValueError("cannot be written")
        admit_item(tenant, request, item)

    monkeypatch.setattr(queue, "_admit_item", broken)
    fanout.promote_queued()

    assert states(good) == ["admitted"] * 3
    assert states(bad) == ["admitted", "admitted", "queued"]


def test_the_queue_costs_one_query_when_it_is_empty(django_assert_num_queries: Any, db: None) -> None:
    with django_assert_num_queries(1):
        fanout.promote_queued()
