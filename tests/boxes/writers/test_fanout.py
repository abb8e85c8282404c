"""Plans of several boxes: decided at once, created by the worker, promoted fairly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from accounts.models import User
from accounts.services import delete_user, upsert_github_user
from base.clock import database_now
from boxes import fanout, services
from boxes.errors import BoxNotFound, InvalidRequest, LabelTaken
from boxes.models import Box, FanoutItem, FanoutRequest, Installation
from boxes.states import ItemState
from boxes.tasks import promote_fanouts
from conversations.models import Conversation
from conversations.services import ConversationNotFound, delete_conversation, ensure_conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import drive, pass_time, run_driver
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
PRINCIPAL = {"type": "user", "id": "owner"}


def admit(conversation: Conversation, count: int, **options: Any) -> FanoutRequest:
    return fanout.admit(conversation.id, PRINCIPAL, count, **options)


def states(request: FanoutRequest) -> list[str]:
    return list(request.items.order_by("position").values_list("state", flat=True))


def reasons(request: FanoutRequest) -> list[str | None]:
    return list(request.items.order_by("position").values_list("queue_reason", flat=True))


def pass_queue_time(seconds: float) -> None:
    waiting = FanoutItem.objects.exclude(next_attempt_at=None)
    waiting.update(next_attempt_at=F("next_attempt_at") - timedelta(seconds=seconds))
    held = Installation.objects.exclude(creates_held_until=None)
    held.update(creates_held_until=F("creates_held_until") - timedelta(seconds=seconds))


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


def test_a_refusal_about_billing_puts_the_item_and_the_rest_back(
    conversation: Conversation,
    provider: FakeProvider,
    box_api: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from boxes.provisioning import ProvisioningDriver

    monkeypatch.setattr(ProvisioningDriver, "slots", 1)
    box_api(default_maximum_active_boxes=4)
    request = admit(conversation, 3)
    Box.objects.exclude(label="box-1").update(next_provision_at=database_now() + timedelta(minutes=1))
    provider.next("create", status=402, code="billing_required")
    run_driver()

    assert states(request) == ["queued"] * 3
    assert reasons(request) == ["provider_billing_required"] * 3
    assert not Box.objects.exists()
    assert provider.count("create") == 1


def test_a_refusal_about_one_item_puts_back_that_one(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    request = admit(conversation, 2)
    Box.objects.filter(label="box-2").update(next_provision_at=database_now() + timedelta(minutes=1))
    provider.next("create", status=503, code="no_ready_machine")
    run_driver()

    assert states(request) == ["queued", "admitted"]
    assert reasons(request) == ["box_provider_refused", None]
    request.refresh_from_db()
    assert (request.admitted_count, request.queued_count) == (1, 1)


def test_what_the_provider_refused_is_tried_again_after_a_pause(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 1)
    provider.next("create", status=429, code="rate_limited", retry_after=90)
    drive()
    assert reasons(request) == ["provider_rate_limited"]

    assert fanout.promote_queued() == 0
    pass_queue_time(91)
    assert fanout.promote_queued() == 1
    drive()

    assert request.items.get().box.state == "ready"
    assert len(provider.existing()) == 1


def test_an_answer_that_was_lost_keeps_the_item_admitted(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 1)
    provider.next("create", drop_after=True)
    run_driver()
    pass_time(10)
    drive()

    assert states(request) == ["admitted"]
    assert [made.id for made in provider.existing()] == [request.items.get().box.box_id]


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


def test_a_conversation_deleted_meanwhile_is_passed_over(conversation: Conversation) -> None:
    admit(conversation, 3)
    Conversation.objects.update(deleted_at=database_now())

    assert fanout.promote_queued() == 0


def test_a_deletion_through_the_service_ends_the_queue(conversation: Conversation) -> None:
    request = admit(conversation, 3)
    delete_conversation(conversation)

    assert reasons(request)[-1] == "owner_deleted"


def test_the_queue_costs_one_query_when_it_is_empty(django_assert_num_queries: Any, db: None) -> None:
    with django_assert_num_queries(1):
        fanout.promote_queued()


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
