"""What a box cost is asked for after its end, and settled once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from base import pump
from base.clock import database_now
from base.pump import Holder, Outcome
from boxes import services
from boxes.models import Box
from boxes.reconciler import reconcile
from boxes.usage.settlement import Figure, SettlementDriver, settle_due
from tests.boxes.reconciler.conftest import Pair, again, refused
from tests.fakes.provider import FakeProvider
from tests.fakes.world import FakeBox

pytestmark = pytest.mark.django_db
BOX_ID = "bx_8bhkse3n"
DAY = 24 * 3600


@pytest.fixture
def box(make_row: Pair, provider: FakeProvider) -> Box:
    """A row that was stopped a minute ago, due now; its box is archived after 1,000 paid seconds."""
    provider.add_box(BOX_ID, age=1000).state = "archived"
    return stopped(make_row, 60)


def stopped(make_row: Pair, seconds: float, **fields: Any) -> Box:
    now = database_now()
    values = {
        "state": "archived",
        "stopped_at": now - timedelta(seconds=seconds),
        "stop_reason": "user_requested",
        "next_settlement_at": now - timedelta(seconds=1),
    }
    return make_row(**(values | fields))


def at_provider(provider: FakeProvider) -> FakeBox:
    return provider.boxes[BOX_ID]


def in_seconds(moment: Any) -> float:
    return float((moment - database_now()).total_seconds())


# when it is asked for


def test_after_a_persons_stop_it_is_asked_for_in_two_seconds(pair: Pair, provider: FakeProvider) -> None:
    box = pair()
    services.stop_box(box.conversation_id, str(box.pk))

    assert in_seconds(again(box).next_settlement_at) == pytest.approx(2, abs=1)
    assert settle_due() == 0


def test_after_a_stop_by_a_pass_it_is_asked_for_in_a_minute(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=3601)
    reconcile()
    asked = provider.count()
    reconcile()

    assert in_seconds(again(box).next_settlement_at) == pytest.approx(60, abs=3)
    assert [call.name for call in provider.calls()[asked:]] == ["list"]


def test_a_cost_in_the_answer_to_a_stop_settles_at_once(pair: Pair, provider: FakeProvider) -> None:
    boxes = [
        pair("bx_22222222", extra={"settledCostMicrousd": "12"}),
        pair("bx_22222223", age=3601, row={"label": "old"}, extra={"cost_microusd": 34}),
    ]
    services.stop_box(boxes[0].conversation_id, "bx_22222222")
    reconcile()

    assert [again(box).settled_cost_microusd for box in boxes] == [12, 34]
    assert [(again(box).usage_settled_at, again(box).next_settlement_at) for box in boxes] == [
        (again(box).stopped_at, None) for box in boxes
    ]


def test_what_is_not_due_is_left(make_row: Pair, provider: FakeProvider) -> None:
    stopped(make_row, 60, next_settlement_at=database_now() + timedelta(seconds=60))
    make_row("bx_active", label="active")

    assert settle_due() == 0
    assert provider.count() == 0


def test_a_row_that_nobody_scheduled_is_settled_by_a_pass(make_row: Pair, provider: FakeProvider) -> None:
    box = stopped(make_row, 60, next_settlement_at=None)
    provider.add_box(BOX_ID, age=1000).state = "archived"
    assert pump.run_once([SettlementDriver()]).claimed == 0

    assert reconcile().settled == 1
    assert again(box).settled_cost_microusd == 10_000


# what settles


def test_an_archived_box_settles_by_its_usage(box: Box, provider: FakeProvider) -> None:
    assert settle_due() == 1

    row = again(box)
    assert row.settled_cost_microusd == 10_000  # a thousand seconds at a cent a thousand
    assert row.usage_settled_at is not None
    assert (row.next_settlement_at, row.lease_expires_at) == (None, None)
    assert [call.name for call in provider.calls()] == ["get", "usage"]


@pytest.mark.parametrize(
    ("shown", "cost"),
    [
        ({"settledCostMicrousd": 5}, 5),
        ({"settled_cost_microusd": "6"}, 6),
        ({"costMicrousd": 7}, 7),
        ({"cost_microusd": 0}, 0),
        ({"usage": {"settledCostMicrousd": 8}}, 8),
        ({"costMicrousd": 2**63 - 1}, 2**63 - 1),
    ],
)
def test_a_cost_in_the_boxs_own_answer_settles(
    box: Box, provider: FakeProvider, shown: dict[str, Any], cost: int
) -> None:
    at_provider(provider).extra = shown

    settle_due()

    assert again(box).settled_cost_microusd == cost
    assert provider.count("usage") == 0


@pytest.mark.parametrize("cost", [-1, "-1", "1.5", 1.5, True, [], 2**63, "x", None])
def test_a_cost_that_is_none_is_not_taken_for_one(box: Box, provider: FakeProvider, cost: Any) -> None:
    at_provider(provider).extra = {"costMicrousd": cost}

    settle_due()

    assert again(box).settled_cost_microusd == 10_000
    assert provider.count("usage") == 1


@pytest.mark.parametrize("dollars", [92_233_720_368.0, "0.000001", 0])
def test_large_and_small_figures_are_exact(box: Box, provider: FakeProvider, dollars: Any) -> None:
    provider.next("usage", json={"dollars": dollars, "running": False})

    settle_due()

    assert again(box).settled_cost_microusd == round(float(dollars) * 1_000_000)


@pytest.mark.parametrize("route", ["get", "usage"])
def test_a_box_that_is_gone_settles_as_unknown(box: Box, provider: FakeProvider, route: str) -> None:
    provider.next(route, status=404, code="not_found")

    settle_due()

    row = again(box)
    assert (row.settled_cost_microusd, row.usage_settled_at is not None) == (None, True)


def test_a_row_that_never_got_an_id_settles_as_unknown(make_row: Pair, provider: FakeProvider) -> None:
    box = stopped(make_row, 60, box_id=None)

    settle_due()

    assert again(box).usage_settled_at is not None
    assert provider.count() == 0


# what does not settle yet


@pytest.mark.parametrize("state", ["archiving", "idle", "ready", "limbo"])
def test_a_box_that_is_not_down_is_asked_about_again(box: Box, provider: FakeProvider, state: str) -> None:
    at_provider(provider).state = state

    settle_due()

    row = again(box)
    assert (row.usage_settled_at, row.settlement_attempts) == (None, 1)
    assert in_seconds(row.next_settlement_at) == pytest.approx(2, abs=1)
    assert provider.count("usage") == 0


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"status": 500}, "box_provider_refused"),
        ({"drop_before": True}, "box_unreachable"),
        ({"status": 401}, "box_unauthorized"),
        ({"html": True}, "box_response_invalid"),
        ({"status": 429}, "box_rate_limited"),
    ],
)
@pytest.mark.parametrize("route", ["get", "usage"])
def test_an_answer_that_cannot_be_used_settles_nothing(
    box: Box, provider: FakeProvider, route: str, fault: dict[str, Any], code: str
) -> None:
    provider.next(route, **fault)

    settle_due()

    row = again(box)
    assert (row.usage_settled_at, row.settlement_attempts, row.reconciliation_error) == (None, 1, code)
    assert settle_due() == 0


@pytest.mark.parametrize("usage", [{"dollars": 1, "running": True}, {"seconds": 9}, {}])
def test_a_figure_that_is_not_final_settles_nothing(box: Box, provider: FakeProvider, usage: Any) -> None:
    provider.next("usage", json=usage)

    settle_due()

    assert (again(box).usage_settled_at, again(box).settlement_attempts) == (None, 1)


def test_the_pauses_grow_to_ten_minutes(box: Box, provider: FakeProvider) -> None:
    provider.always("get", status=500)
    pauses = []
    for _ in range(12):
        Box.objects.update(next_settlement_at=database_now() - timedelta(seconds=1))
        settle_due()
        pauses.append(round(in_seconds(again(box).next_settlement_at)))

    assert pauses == pytest.approx([2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600], abs=2)


def test_a_provider_that_wants_to_be_left_alone_is_left_alone(make_row: Pair, provider: FakeProvider) -> None:
    boxes = [stopped(make_row, 60, box_id=f"bx_2222222{digit}", label=f"box-{digit}") for digit in "2345678"]
    provider.always("get", status=429, retry_after=120)
    driver = SettlementDriver()
    driver.slots = 1

    pump.run_once([driver])

    assert provider.count("get") == 1
    for box in boxes:
        assert again(box).settlement_attempts == 0
        assert in_seconds(again(box).next_settlement_at) == pytest.approx(120, abs=3)


def test_a_day_without_a_figure_settles_as_unknown(make_row: Pair, provider: FakeProvider) -> None:
    provider.add_box(BOX_ID, state="idle")
    young = stopped(make_row, DAY - 60)
    old = stopped(make_row, DAY + 60, box_id="bx_22222222", label="old")
    provider.always("get", box="bx_22222222", status=500)

    settle_due()

    assert again(young).usage_settled_at is None
    assert (again(old).settled_cost_microusd, again(old).usage_settled_at is not None) == (None, True)


def test_a_figure_that_comes_on_the_last_day_counts(make_row: Pair, provider: FakeProvider) -> None:
    provider.add_box(BOX_ID, age=1000).state = "archived"
    box = stopped(make_row, DAY + 60)

    settle_due()

    assert again(box).settled_cost_microusd == 10_000


# once


def test_a_settled_row_is_never_asked_about_again(box: Box, provider: FakeProvider) -> None:
    settle_due()
    asked = provider.count()

    assert settle_due() == 0
    assert reconcile().boxes == 0
    assert provider.count() == asked + 1  # the list


def test_a_second_settlement_changes_nothing(box: Box, provider: FakeProvider) -> None:
    slow, quick = SettlementDriver(), SettlementDriver()
    (task,) = slow.claim(Holder(), 10)
    Box.objects.update(lease_expires_at=None)
    pump.run_once([quick])
    settled = again(box)

    slow.settle(Holder(), [Outcome(task, answer=Figure(999))])

    assert (again(box).settled_cost_microusd, again(box).usage_settled_at) == (
        10_000,
        settled.usage_settled_at,
    )


@pytest.mark.parametrize("change", [{"settled_cost_microusd": 1}, {"usage_settled_at": None}])
def test_the_database_refuses_to_settle_twice(
    box: Box, provider: FakeProvider, change: dict[str, Any]
) -> None:
    settle_due()

    with pytest.raises(DatabaseError, match="settled usage is immutable"), transaction.atomic():
        Box.objects.update(**change)


def test_each_row_is_asked_about_by_one(box: Box) -> None:
    assert len(SettlementDriver().claim(Holder(), 10)) == 1
    assert SettlementDriver().claim(Holder(), 10) == []


def test_a_row_whose_cost_is_known_already_keeps_it(make_row: Pair, provider: FakeProvider) -> None:
    box = stopped(make_row, 60, settled_cost_microusd=42)
    provider.add_box(BOX_ID, age=1000).state = "archived"

    settle_due()

    assert again(box).settled_cost_microusd == 42
    assert again(box).usage_settled_at is not None


# many


@pytest.mark.django_db(transaction=True)
def test_one_row_that_cannot_be_written_does_not_hold_up_another(
    box: Box, make_row: Pair, provider: FakeProvider
) -> None:
    provider.add_box("bx_22222222", age=1000).state = "archived"
    bad = stopped(make_row, 60, box_id="bx_22222222", label="bad")

    with refused(bad, when="new.usage_settled_at is not null"):
        settle_due()

    assert again(box).settled_cost_microusd == 10_000
    assert again(bad).usage_settled_at is None


def test_more_rows_than_are_leased_at_once_are_all_asked_about(
    make_row: Pair, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxes.usage.settlement.AT_ONCE", 3)
    for number in range(8):
        provider.add_box(f"bx_2222222{number}", state="idle")
        stopped(make_row, 60, box_id=f"bx_2222222{number}", label=f"box-{number}")

    assert settle_due() == 8
    assert provider.count("get") == 8


def test_settling_ends_when_its_time_is_up(box: Box, provider: FakeProvider) -> None:
    assert settle_due(ends_at=0) == 0
    assert provider.count() == 0


def test_it_knows_when_the_next_row_is_due(
    make_row: Pair, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    assert SettlementDriver().seconds_until_due() is None

    stopped(make_row, 60, next_settlement_at=database_now() + timedelta(seconds=30))

    assert SettlementDriver().seconds_until_due() == pytest.approx(30, abs=2)


def test_a_row_that_was_last_seen_coming_down_is_down_once_its_box_is(
    make_row: Pair, provider: FakeProvider
) -> None:
    provider.add_box(BOX_ID, age=1000).state = "archived"
    box = stopped(make_row, 60, state="archiving")

    settle_due()

    assert again(box).state == "archived"


def test_a_cost_that_is_told_before_the_box_is_down_leaves_it_coming_down(
    make_row: Pair, provider: FakeProvider
) -> None:
    made = provider.add_box(BOX_ID, age=1000)
    made.state = "archiving"
    made.extra |= {"costMicrousd": 5}
    box = stopped(make_row, 60, state="archiving")

    settle_due()

    assert again(box).state == "archiving"
