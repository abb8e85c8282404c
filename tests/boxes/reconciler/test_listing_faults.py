"""What a pass makes of a list that is broken, late, endless or wrong: an error, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from base.clock import database_now
from boxes.errors import ProviderError, RetryLater
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
LATER = {"next_reconciliation_at", "reconciliation_error", "reconciliation_failures"}


@pytest.fixture
def fleet(pair: Pair, make_row: Pair, provider: FakeProvider) -> list[Box]:
    """One box of each kind that a pass would act on: healthy, expired, gone, ended, and a leak."""
    provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)
    return [
        pair("bx_22222222", row={"label": "healthy"}),
        pair("bx_22222223", age=3601, row={"label": "expired"}),
        make_row("bx_22222224", label="gone"),
        pair("bx_22222225", state="archived", row={"label": "ended"}),
    ]


def snapshot() -> list[dict[str, Any]]:
    return list(Box.objects.order_by("pk").values())


def listing_error(provider: FakeProvider) -> str:
    """The code with which a pass ends that asks for nothing but the list, and acts on nothing."""
    with pytest.raises(ProviderError) as raised:
        reconcile()
    assert {call.name for call in provider.calls()} == {"list"}
    assert not ReconciliationEvent.objects.exists()
    return raised.value.code


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"json": {"boxes": {}}}, "box_response_invalid"),
        ({"json": {"boxes": None}}, "box_response_invalid"),
        ({"json": {}}, "box_response_invalid"),
        ({"json": []}, "box_response_invalid"),
        ({"json": {"boxes": [{"id": "bx_22222222"}, {"name": "no id"}]}}, "box_response_invalid"),
        ({"json": {"boxes": [{"id": 7}]}}, "box_response_invalid"),
        ({"json": {"boxes": [None]}}, "box_response_invalid"),
        ({"html": True}, "box_response_invalid"),
        ({"empty": True}, "box_response_invalid"),
        ({"cut_json": 0.5}, "box_response_invalid"),
        ({"huge": 10 << 20}, "box_response_invalid"),
        ({"redirect": "https://example.com/boxes"}, "box_provider_refused"),
        ({"status": 500}, "box_provider_refused"),
        ({"status": 503, "html": True}, "box_provider_refused"),
        ({"status": 401}, "box_unauthorized"),
        ({"status": 403, "code": "forbidden"}, "box_billing_required"),
        ({"status": 404}, "box_not_found"),
        ({"status": 410, "code": "cursor_expired"}, "box_provider_refused"),
        ({"json": {"ok": False, "code": "internal_error"}}, "box_provider_refused"),
    ],
)
def test_a_list_that_cannot_be_used_ends_the_pass_and_touches_nothing(
    fleet: list[Box], provider: FakeProvider, fault: dict[str, Any], code: str
) -> None:
    before = snapshot()
    provider.always("list", **fault)

    assert listing_error(provider) == code
    assert snapshot() == before


@pytest.mark.parametrize("fault", [{"drop_before": True}, {"half": 0.5}, {"status": 429}])
def test_silence_and_a_bare_rate_limit_are_held_against_every_considered_row(
    fleet: list[Box], provider: FakeProvider, make_row: Pair, fault: dict[str, Any]
) -> None:
    now = database_now()
    make_row("bx_old", label="settled", stopped_at=now, usage_settled_at=now)
    make_row("bx_new", label="unsettled", stopped_at=now, next_settlement_at=now + timedelta(hours=1))
    before = {row["label"]: row for row in snapshot()}
    provider.always("list", **fault)

    code = listing_error(provider)

    assert provider.count("list") == 3
    for row in snapshot():
        changed = {name for name, value in row.items() if before[row["label"]][name] != value}
        assert changed == (set() if row["label"] == "settled" else LATER)
        if row["label"] != "settled":
            assert (row["reconciliation_failures"], row["reconciliation_error"]) == (1, code)


def test_the_pauses_after_failed_lists_grow(make_row: Pair, provider: FakeProvider) -> None:
    box, pauses = make_row(), []
    provider.always("list", drop_before=True)
    for _ in range(8):
        listing_error(provider)
        pauses.append(round((again(box).next_reconciliation_at - database_now()).total_seconds()))

    assert pauses == pytest.approx([5, 10, 20, 40, 80, 160, 300, 300], abs=2)


@pytest.mark.parametrize("status", [429, 503])
def test_a_list_that_says_when_to_come_back_is_held_against_nobody(
    fleet: list[Box], provider: FakeProvider, status: int
) -> None:
    before = snapshot()
    provider.always("list", status=status, retry_after=120)

    with pytest.raises(RetryLater) as raised:
        reconcile()

    assert raised.value.retry_after_seconds == pytest.approx(120, abs=1)
    assert snapshot() == before
    assert provider.count() == 1  # and it was asked once


# pages


@pytest.fixture
def pages(provider: FakeProvider, make_row: Pair) -> list[Box]:
    """Three pages of somebody else's boxes and, on the last, one of ours; one more of ours is gone."""
    ours = provider.add_box("bx_22222222", name=provider_ownership_marker())
    provider.add_boxes(450, name="theirs")
    return [make_row(ours.id), make_row("bx_22222223", label="gone")]


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 410, "code": "cursor_expired"},
        {"json": {"boxes": [], "pageInfo": {"hasMore": False, "nextCursor": None, "limit": 200}}},
        {"json": {"boxes": []}},
        {"cut_json": 0.9},
        {"half": 0.5},
        {"html": True},
        {"edit": lambda body: {**body, "pageInfo": {"hasMore": True, "nextCursor": None}}},
    ],
)
@pytest.mark.parametrize("page", [2, 3])
def test_a_page_that_is_broken_proves_nothing_about_what_is_missing(
    pages: list[Box], provider: FakeProvider, fault: dict[str, Any], page: int
) -> None:
    provider.always("list", page=page, **fault)

    listing_error(provider)

    assert all(again(box).stopped_at is None for box in pages)
    assert provider.count("stop") == 0


def test_a_list_that_lacks_boxes_writes_nothing_off_that_exists(pair: Pair, provider: FakeProvider) -> None:
    boxes = [pair(f"bx_2222222{digit}", row={"label": f"box-{digit}"}) for digit in "2345"]
    provider.always("list", edit=lambda body: {**body, "boxes": body["boxes"][:1]})

    result = reconcile()

    assert (result.provider_boxes, result.ended, result.observed) == (1, 0, 4)
    assert all(again(box).stopped_at is None for box in boxes)


def test_an_empty_list_is_a_list(pages: list[Box], provider: FakeProvider) -> None:
    provider.world.boxes.clear()

    assert reconcile().ended == 2


def test_entries_that_come_twice_are_one_box(pair: Pair, provider: FakeProvider) -> None:
    pair(age=3601)
    leak = provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)
    provider.always("list", edit=lambda body: {**body, "boxes": body["boxes"] * 3})

    result = reconcile()

    assert (result.provider_boxes, result.stopped, result.leaks, result.leaks_stopped) == (2, 1, 1, 1)
    assert provider.count("stop", leak.id) == 1


def test_the_older_forms_of_a_list_are_read(make_row: Pair, provider: FakeProvider) -> None:
    box, entry = make_row(), {"id": "bx_8bhkse3n", "status": "running", "name": provider_ownership_marker()}
    provider.always("list", json={"data": [entry]})
    provider.always("get", json={"box": entry})

    assert reconcile().provider_boxes == 1
    assert again(box).state == "running"


# time


@pytest.mark.parametrize("head", [True, False])
def test_a_list_that_drips_is_left_when_its_time_is_up(
    fleet: list[Box], provider: FakeProvider, box_api: Callable[..., None], head: bool
) -> None:
    box_api(reconciliation_receive_timeout_ms=300)
    provider.always("list", drip=0.05, drip_head=head)

    assert listing_error(provider) == "box_unreachable"
    assert provider.count("list") == 3


def test_a_look_that_drips_costs_only_its_row(
    pair: Pair, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(reconciliation_receive_timeout_ms=300)
    slow, good = pair("bx_22222222"), pair("bx_22222223", age=3601, row={"label": "good"})
    provider.always("get", box="bx_22222222", drip=0.05)

    result = reconcile()

    assert (result.failed, result.stopped, result.incomplete) == (1, 1, True)
    assert (again(slow).stopped_at, again(slow).reconciliation_error) == (None, "box_unreachable")
    assert again(good).stopped_at is not None
