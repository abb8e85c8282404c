"""Whether one more box may exist: limits, their order, and what counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from base.clock import database_now
from boxes import admission, services
from boxes.admission import Limits, Load, verdict
from boxes.conf import BoxApi
from boxes.errors import BurnRateReached, LabelTaken, QuotaReached
from boxes.models import Box
from conversations.models import Conversation, Visitor
from conversations.services import ensure_conversation
from tests.boxes.writers.conftest import MakeBox
from tests.fakes.provider import FakeProvider

ROOMY = Limits(10, 10, 10, 10_000_000, 10_000_000, 100_000)
amounts = st.integers(min_value=0, max_value=20)
microusd = st.integers(min_value=0, max_value=2_000_000)
loads = st.builds(Load, amounts, amounts, amounts, microusd, microusd)
limits = st.builds(Limits, amounts, amounts, amounts, microusd, microusd, microusd)


@pytest.mark.parametrize(
    ("load", "code"),
    [
        (Load(), None),
        (Load(9, 9, 9, 9_900_000, 9_900_000), None),
        (Load(conversation_boxes=10), "box_quota_reached"),
        (Load(owner_boxes=10), "box_owner_quota_reached"),
        (Load(global_boxes=10), "box_global_quota_reached"),
        (Load(conversation_burn_microusd=9_900_001), "conversation_burn_rate_ceiling"),
        (Load(owner_burn_microusd=9_900_001), "owner_burn_rate_ceiling"),
        (Load(10, 10, 10, 99_000_000, 99_000_000), "box_quota_reached"),
        (Load(0, 10, 10, 99_000_000, 99_000_000), "box_owner_quota_reached"),
        (Load(0, 0, 10, 99_000_000, 99_000_000), "box_global_quota_reached"),
        (Load(0, 0, 0, 99_000_000, 99_000_000), "conversation_burn_rate_ceiling"),
    ],
)
def test_the_first_limit_that_one_more_would_pass_decides(load: Load, code: str | None) -> None:
    assert verdict(load, ROOMY, has_owner=True) == code


def test_an_owner_without_an_account_has_no_limits_as_an_owner() -> None:
    load = Load(owner_boxes=10, owner_burn_microusd=99_000_000)

    assert verdict(load, ROOMY, has_owner=False) is None


@given(load=loads, limits=limits, has_owner=st.booleans())
def test_what_is_admitted_stays_within_every_limit(load: Load, limits: Limits, has_owner: bool) -> None:
    if verdict(load, limits, has_owner=has_owner) is not None:
        return

    after = load.plus_one(limits.estimate_microusd)
    assert after.conversation_boxes <= limits.conversation_boxes
    assert after.global_boxes <= limits.global_boxes
    assert after.conversation_burn_microusd <= limits.conversation_burn_microusd
    if has_owner:
        assert after.owner_boxes <= limits.owner_boxes
        assert after.owner_burn_microusd <= limits.owner_burn_microusd


@given(
    load=loads, limits=limits, has_owner=st.booleans(), fields=st.sets(st.sampled_from(list(Load.__slots__)))
)
def test_more_load_never_admits_what_less_refused(
    load: Load, limits: Limits, has_owner: bool, fields: set[str]
) -> None:
    from dataclasses import replace

    if verdict(load, limits, has_owner=has_owner) is None:
        return

    heavier = replace(load, **{field: getattr(load, field) + 1 for field in fields})
    assert verdict(heavier, limits, has_owner=has_owner) is not None


def test_a_budgeted_request_raises_only_the_conversations_limit() -> None:
    plain, budgeted = (Limits.of(BoxApi(), budgeted=budgeted) for budgeted in (False, True))

    assert (plain.conversation_boxes, budgeted.conversation_boxes) == (2, 10)
    assert (plain.owner_boxes, plain.global_boxes) == (budgeted.owner_boxes, budgeted.global_boxes) == (4, 20)


@pytest.mark.django_db
class TestCounting:
    def test_a_quota_refusal_asks_nobody_and_stores_nothing(
        self, conversation: Conversation, make_box: MakeBox, provider: FakeProvider
    ) -> None:
        make_box("bx_1")
        make_box("bx_2")

        with pytest.raises(QuotaReached) as refused:
            services.create_box(conversation.id)

        assert refused.value.code == "box_quota_reached"
        assert provider.count() == 0
        assert Box.objects.count() == 2

    def test_a_stopped_box_frees_its_place_at_once(
        self, conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
    ) -> None:
        box_api(default_maximum_active_boxes=1)
        first = services.create_box(conversation.id)
        services.stop_box(conversation.id, first.label)

        assert services.create_box(conversation.id).box_id is not None

    def test_boxes_of_another_conversation_do_not_count_here(
        self,
        conversation: Conversation,
        other_conversation: Conversation,
        provider: FakeProvider,
        make_box: MakeBox,
    ) -> None:
        make_box("bx_1", conversation=other_conversation)
        make_box("bx_2", conversation=other_conversation)

        assert services.create_box(conversation.id).box_id is not None

    def test_an_owner_counts_over_all_conversations(
        self, owner: User, conversation: Conversation, make_box: MakeBox, box_api: Callable[..., None]
    ) -> None:
        older = Conversation.objects.create(
            visitor=Visitor.objects.get(user=owner), deleted_at=database_now()
        )
        for number in range(4):
            make_box(f"bx_{number}", conversation=older)

        with pytest.raises(QuotaReached) as refused:
            services.create_box(conversation.id)

        assert refused.value.code == "box_owner_quota_reached"

    def test_the_installation_has_a_limit(
        self,
        conversation: Conversation,
        other_conversation: Conversation,
        make_box: MakeBox,
        box_api: Callable[..., None],
    ) -> None:
        box_api(maximum_active_boxes_global=1)
        make_box("bx_1", conversation=other_conversation)

        with pytest.raises(QuotaReached) as refused:
            services.create_box(conversation.id)

        assert refused.value.code == "box_global_quota_reached"

    def test_plain_creates_count_for_the_burn_rate(
        self, conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
    ) -> None:
        box_api(maximum_burn_rate_per_conversation_microusd=150_000)
        services.create_box(conversation.id)

        with pytest.raises(BurnRateReached) as refused:
            services.create_box(conversation.id)

        assert refused.value.code == "conversation_burn_rate_ceiling"
        assert provider.count("create") == 1

    def test_the_owners_burn_rate_counts_too(
        self, conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
    ) -> None:
        box_api(maximum_burn_rate_per_owner_microusd=150_000)
        services.create_box(conversation.id)

        with pytest.raises(BurnRateReached) as refused:
            services.create_box(conversation.id)

        assert refused.value.code == "owner_burn_rate_ceiling"

    def test_a_browsers_boxes_are_limited_by_its_conversation_alone(
        self, db: None, provider: FakeProvider, box_api: Callable[..., None]
    ) -> None:
        box_api(maximum_active_boxes_per_owner=0, maximum_burn_rate_per_owner_microusd=0)

        assert services.create_box(ensure_conversation("browser").id).box_id is not None

    def test_a_label_may_be_chosen_and_is_taken_while_its_box_is_active(
        self, conversation: Conversation, provider: FakeProvider
    ) -> None:
        box = services.create_box(conversation.id, label="  web  ")
        with pytest.raises(LabelTaken):
            services.create_box(conversation.id, label="web")
        services.stop_box(conversation.id, "web")

        assert box.label == "web"
        assert services.create_box(conversation.id, label="web").label == "web"

    def test_an_admission_needs_few_statements_however_much_history_there_is(
        self, conversation: Conversation, make_box: MakeBox, django_assert_max_num_queries: Any
    ) -> None:
        for number in range(30):
            make_box(f"bx_{number}", stopped_at=database_now(), label=f"box-{number}")

        with django_assert_max_num_queries(16):
            box, is_new = admission.reserve(conversation.id)

        assert is_new
        assert box.label == "box-30"
