"""Budgets of a month: what counts, what is refused, and what is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from base import hooks
from base.clock import database_now
from boxes import budgets, fanout, services
from boxes.errors import STATUS_BY_CODE, BudgetReached
from boxes.models import Box, BudgetNotice
from boxes.retention import prune
from boxes.tasks import enforce_budgets
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import again, run_driver
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
RATE = 100_000  # micro-US-dollars an hour


@pytest.fixture
def incidents(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(hooks.incident_reporter, "_callables", [told.append])
    return told


@pytest.fixture
def spend(make_box: MakeBox) -> Callable[..., Box]:
    """`spend(microusd)` is a settled box that stopped now."""

    def make(microusd: int, **fields: Any) -> Box:
        number = Box.objects.count()
        values = {"stopped_at": database_now(), "settled_cost_microusd": microusd, "label": f"spent-{number}"}
        return make_box(f"bx_spent{number}", **values | fields)

    return make


def test_what_was_settled_this_month_counts(owner: User, spend: Callable[..., Box]) -> None:
    spend(1000)
    spend(234)

    assert budgets.spent_this_month(owner.pk) == 1234


def test_figures_of_the_provider_that_no_column_holds_together_are_summed_all_the_same(
    owner: User, conversation: Conversation, spend: Callable[..., Box], box_api: Callable[..., None]
) -> None:
    box_api(budget_per_owner_month_microusd=1)
    spend(2**63 - 1)
    spend(2**63 - 1)

    assert budgets.spent_this_month(owner.pk) == budgets.spent_this_month(None) == 2**64 - 2
    with pytest.raises(BudgetReached, match="18,446,744,073,709"):
        services.create_box(conversation.id)


def test_what_stopped_in_an_earlier_month_does_not(owner: User, spend: Callable[..., Box]) -> None:
    first_of_month = database_now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    spend(1000, stopped_at=first_of_month - timedelta(microseconds=1))
    spend(1, stopped_at=first_of_month)

    assert budgets.spent_this_month(owner.pk) == 1


def test_what_runs_counts_by_its_estimate_so_far(owner: User, make_box: MakeBox) -> None:
    make_box("bx_1", created_at=database_now() - timedelta(hours=2), estimated_burn_rate_microusd=RATE)

    assert budgets.spent_this_month(owner.pk) == pytest.approx(2 * RATE, rel=0.01)


def test_a_cost_that_is_not_known_counts_by_its_estimate(owner: User, spend: Callable[..., Box]) -> None:
    now = database_now()
    hour = {"created_at": now - timedelta(hours=1), "stopped_at": now, "estimated_burn_rate_microusd": RATE}
    spend(0, **hour | {"settled_cost_microusd": None, "label": "unsettled"})
    spend(0, **hour | {"settled_cost_microusd": None, "usage_settled_at": now, "label": "settled as unknown"})
    spend(0, **hour | {"settled_cost_microusd": 0, "label": "known to cost nothing"})

    assert budgets.spent_this_month(owner.pk) == pytest.approx(2 * RATE, rel=0.01)


def test_a_creation_that_was_never_answered_counts_nothing(owner: User, make_box: MakeBox) -> None:
    past = database_now() - timedelta(hours=9)
    make_box(None, label="box-1", created_at=past, estimated_burn_rate_microusd=RATE)

    assert budgets.spent_this_month(owner.pk) == 0


def test_an_owner_with_a_spent_budget_is_refused_with_the_figure(
    conversation: Conversation,
    spend: Callable[..., Box],
    box_api: Callable[..., None],
    provider: FakeProvider,
) -> None:
    box_api(budget_per_owner_month_microusd=1_500_000)
    spend(2_345_678)

    with pytest.raises(BudgetReached) as refused:
        services.create_box(conversation.id)

    assert refused.value.code == "owner_budget_reached"
    assert "2.345678 of 1.500000 US dollars" in refused.value.detail
    assert provider.count() == 0


def test_a_budget_of_nothing_is_no_budget(
    conversation: Conversation, spend: Callable[..., Box], provider: FakeProvider
) -> None:
    spend(10**12)

    assert services.create_box(conversation.id).box_id is not None


def test_what_others_spend_is_not_the_owners(
    other_conversation: Conversation,
    spend: Callable[..., Box],
    box_api: Callable[..., None],
    provider: FakeProvider,
) -> None:
    box_api(budget_per_owner_month_microusd=1000)
    spend(5000)

    assert services.create_box(other_conversation.id).box_id is not None


def test_the_installations_budget_counts_everybody(
    conversation: Conversation,
    spend: Callable[..., Box],
    box_api: Callable[..., None],
    provider: FakeProvider,
) -> None:
    box_api(budget_month_microusd=6000)
    spend(3000)
    spend(3000, conversation=ensure_conversation("a browser"))

    for each in (conversation, ensure_conversation("another browser")):
        with pytest.raises(BudgetReached) as refused:
            services.create_box(each.id)
        assert refused.value.code == "budget_reached"


def test_the_api_has_a_status_for_both_codes() -> None:
    assert STATUS_BY_CODE["owner_budget_reached"] == STATUS_BY_CODE["budget_reached"] == 409


def test_an_incident_is_told_once_a_day_and_owner(
    conversation: Conversation, owner: User, spend: Callable[..., Box], box_api: Callable[..., None],
    incidents: list[dict[str, Any]],
) -> None:  # fmt: skip
    box_api(budget_per_owner_month_microusd=1000)
    spend(1000)
    for _ in range(3):
        with pytest.raises(BudgetReached):
            services.create_box(conversation.id)
    BudgetNotice.objects.update(day=database_now().date() - timedelta(days=1))
    with pytest.raises(BudgetReached):
        services.create_box(conversation.id)

    assert [incident["code"] for incident in incidents] == ["owner_budget_reached"] * 2
    assert incidents[0]["owner_user"] == owner.pk
    assert incidents[0]["context"] == {"spent_microusd": 1000, "budget_microusd": 1000}


def test_a_plan_waits_for_a_budget_and_says_so(
    conversation: Conversation, spend: Callable[..., Box], box_api: Callable[..., None], incidents: list[Any]
) -> None:
    box_api(budget_per_owner_month_microusd=1000)
    spend(1000)

    request = fanout.admit(conversation.id, {"type": "user", "id": "x"}, 2)
    assert set(request.items.values_list("queue_reason", flat=True)) == {"owner_budget_reached"}
    assert len(incidents) == 1

    box_api(budget_per_owner_month_microusd=0)
    assert fanout.promote_queued() == 2


def test_a_budget_that_something_running_passes_is_noticed(
    make_box: MakeBox, box_api: Callable[..., None], incidents: list[Any], other_conversation: Conversation
) -> None:
    box_api(budget_per_owner_month_microusd=RATE, budget_month_microusd=10 * RATE)
    make_box("bx_1", created_at=database_now() - timedelta(hours=2), estimated_burn_rate_microusd=RATE)
    make_box("bx_2", conversation=other_conversation, estimated_burn_rate_microusd=RATE)

    enforce_budgets()
    enforce_budgets()

    assert [incident["code"] for incident in incidents] == ["owner_budget_reached"]


def test_idle_boxes_are_stopped_only_where_it_is_set_so(
    make_box: MakeBox, box_api: Callable[..., None], incidents: list[Any], provider: FakeProvider
) -> None:
    idle, busy, recent, _other = _four_boxes(make_box, provider)
    box_api(budget_per_owner_month_microusd=1)
    enforce_budgets()
    assert not Box.objects.exclude(stop_requested_at=None).exists()

    box_api(budget_stops_idle_boxes=True)
    enforce_budgets()
    run_driver()

    assert again(idle).stop_reason == "budget_reached"
    assert [again(box).stopped_at for box in (busy, recent)] == [None, None]


def test_boxes_of_owners_within_their_budget_stay(
    make_box: MakeBox, box_api: Callable[..., None], incidents: list[Any], provider: FakeProvider
) -> None:
    *_, other = _four_boxes(make_box, provider)
    box_api(budget_per_owner_month_microusd=1, budget_stops_idle_boxes=True)
    enforce_budgets()

    assert again(other).stop_requested_at is None


def test_old_notices_are_dropped(db: None) -> None:
    today = database_now().date()
    for age in (0, 30, 100):
        BudgetNotice.objects.create(subject="installation", day=today - timedelta(days=age))

    prune()

    assert BudgetNotice.objects.count() == 2


def _four_boxes(make_box: MakeBox, provider: FakeProvider) -> list[Box]:
    """Of the owner: one idle for hours, one with something alive in it, one just used; and one of another owner."""
    past = database_now() - timedelta(hours=2)
    stranger = ensure_conversation("a browser")
    boxes = []
    for number, fields in enumerate(
        [{}, {}, {"last_activity_at": database_now()}, {"conversation": stranger}]
    ):
        provider.add_box(f"bx_{number}")
        values = {"created_at": past, "label": f"box-{number}", "estimated_burn_rate_microusd": RATE} | fields
        boxes.append(make_box(f"bx_{number}", **values))
    alive = {boxes[1].pk: None}
    hooks.box_activity._callables.append(lambda ids: {pk: alive[pk] for pk in ids if pk in alive})
    return boxes


@pytest.fixture(autouse=True)
def _own_reporters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks.box_activity, "_callables", [])
