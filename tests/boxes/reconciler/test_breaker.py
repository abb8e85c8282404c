"""When a listing is doubted: most boxes gone at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from boxes.models import Box
from boxes.reconciler import reconcile
from boxes.reconciler.breaker import absence, held_back, is_mass_absence
from boxes.reconciler.types import Decision, End, Leave, Note
from boxes.states import BoxState, SetupStatus, StopReason
from tests.boxes.reconciler.conftest import Pair, again
from tests.boxes.reconciler.plain import row
from tests.fakes.provider import FakeProvider

MISSING = End(BoxState.ARCHIVED, StopReason.PROVIDER_MISSING, None, "gone")
ENDED = End(BoxState.ARCHIVED, StopReason.PROVIDER_TERMINAL, None, "archived")
WELL = Note(BoxState.READY, SetupStatus.DONE)


@pytest.mark.parametrize(
    ("missing", "live", "doubted"),
    [(5, 5, False), (6, 6, True), (6, 11, True), (6, 12, False), (7, 12, True), (0, 0, False), (500, 1000, False)],
)  # fmt: skip
def test_more_than_five_and_more_than_half(missing: int, live: int, doubted: bool) -> None:
    assert is_mass_absence(missing, live) is doubted


def decisions(*actions: Any) -> list[Decision]:
    return [Decision(row(box_id=f"bx_{number}"), action) for number, action in enumerate(actions)]


def test_what_its_own_answer_shows_is_not_missing() -> None:
    found = absence(decisions(*[ENDED] * 8, *[WELL] * 3, MISSING), listed=set())

    assert (found.absent, found.live, found.written_off, found.is_suspect) == (1, 12, 1, False)


def test_only_write_offs_are_held_back() -> None:
    held = held_back(decisions(MISSING, ENDED, WELL))

    assert isinstance(held[0].action, Leave)
    assert [entry.action for entry in held[1:]] == [ENDED, WELL]


# with a ledger


@pytest.fixture
def gone(make_row: Pair, pair: Pair) -> list[Box]:
    """Seven boxes that the provider does not know, and one that it does."""
    pair("bx_222222zz")
    return [make_row(f"bx_2222222{digit}", label=f"box-{digit}") for digit in "3456789"]


@pytest.mark.django_db
def test_the_first_pass_writes_none_off_and_tells_staff(
    gone: list[Box], incidents: list[dict[str, Any]], provider: FakeProvider
) -> None:
    result = reconcile()

    assert (result.ended, provider.count("get")) == (0, 8)
    assert all(again(box).stopped_at is None for box in gone)
    assert [incident["code"] for incident in incidents] == ["mass_absence"]
    assert "lacks 7 of 8 live boxes" in incidents[0]["summary"]


@pytest.mark.django_db
def test_the_next_pass_decides(gone: list[Box], incidents: list[dict[str, Any]]) -> None:
    reconcile()

    assert reconcile().ended == 7
    assert {again(box).stop_reason for box in gone} == {"provider_missing"}
    assert len(incidents) == 1


@pytest.mark.django_db
def test_a_listing_in_between_that_is_whole_is_forgiven_everything(
    gone: list[Box], incidents: list[dict[str, Any]], provider: FakeProvider
) -> None:
    reconcile()
    back = [provider.add_box(box.box_id, name="whatever") for box in gone]
    reconcile()
    for box in back:
        provider.boxes.pop(box.id)

    assert reconcile().ended == 0
    assert len(incidents) == 2


@pytest.mark.django_db
def test_it_remembers_also_where_the_name_is_a_setting(
    gone: list[Box], incidents: list[dict[str, Any]], box_api: Callable[..., None]
) -> None:
    box_api(ownership_marker="our-boxes")
    reconcile()

    assert reconcile().ended == 7


@pytest.mark.django_db
def test_rows_that_could_not_be_asked_about_write_nothing_off(
    gone: list[Box], incidents: list[dict[str, Any]], provider: FakeProvider
) -> None:
    provider.always("GET /boxes/{id}", status=500)

    assert reconcile().ended == 0
    assert incidents == []


@pytest.mark.django_db
def test_answers_that_write_off_what_the_list_shows_are_doubted_as_well(
    pair: Pair, incidents: list[dict[str, Any]], provider: FakeProvider
) -> None:
    boxes = [pair(f"bx_2222222{digit}", row={"label": f"box-{digit}"}) for digit in "23456789"]
    provider.next("GET /boxes/{id}", times=8, status=404, html=True)

    assert reconcile().ended == 0
    assert "8 are said to be gone" in incidents[0]["summary"]
    assert reconcile().observed == 8
    assert all(again(box).stopped_at is None for box in boxes)


@pytest.mark.django_db
def test_one_missing_box_is_written_off_at_once(
    make_row: Pair, provider: FakeProvider, incidents: list[dict[str, Any]]
) -> None:
    box = make_row("bx_22222222")

    assert reconcile().ended == 1
    assert again(box).stop_reason == "provider_missing"
    assert incidents == []
