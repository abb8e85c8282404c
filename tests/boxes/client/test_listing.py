"""A listing is complete or it is an error."""

from __future__ import annotations

from typing import Any

import pytest
import responses
from hypothesis import given
from hypothesis import strategies as st

from boxes.client import BoxClient, Page
from boxes.client.listing import parse_page, read_all
from boxes.client.observations import parse_box
from boxes.errors import ProviderError, Refused, RetryLater, Unknown
from tests.boxes.client.conftest import BASE
from tests.boxes.client.properties import unhurried
from tests.fakes.provider import FakeProvider


def page_of(*ids: str, cursor: str | None = None, promised: bool = False) -> Page:
    return Page(tuple(parse_box({"id": box_id}, box_id) for box_id in ids), cursor, promised)


def read(*pages: Page, maximum: int = 10) -> Any:
    rest = iter(pages)
    return read_all(lambda _cursor: next(rest), maximum)


@pytest.mark.parametrize(
    "document",
    [
        {"boxes": [{"id": "bx_1"}]},
        {"sandboxes": [{"id": "bx_1"}]},
        {"data": [{"id": "bx_1"}]},
        {"boxes": [{"id": "bx_1"}], "pageInfo": {"nextCursor": None, "hasMore": False, "limit": 200}},
        {"boxes": [{"id": "bx_1"}], "pageInfo": {"nextCursor": "c", "hasMore": False}},
        {"boxes": [{"id": "bx_1"}], "pageInfo": None},
        {"boxes": [{"id": "bx_1"}], "pageInfo": "odd"},
    ],
)
def test_a_page_is_read_in_every_form(document: dict[str, Any]) -> None:
    page = parse_page(document)

    assert ([box.id for box in page.boxes], page.next_cursor) == (["bx_1"], None)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"boxes": None},
        {"boxes": {"bx_1": {}}},
        {"boxes": "bx_1"},
        {"boxes": [None]},
        {"boxes": ["bx_1"]},
        {"boxes": [{"id": "bx_1"}, {"name": "no id"}]},
        {"boxes": [{"id": 7}]},
        {"boxes": [{"id": ""}]},
        {"boxes": [{"id": None}]},
        {"boxes": [{"id": "bx_1"}], "pageInfo": {"hasMore": True}},
        {"boxes": [{"id": "bx_1"}], "pageInfo": {"hasMore": True, "nextCursor": ""}},
    ],
)
def test_a_list_that_is_none_is_an_invalid_answer(document: dict[str, Any]) -> None:
    with pytest.raises(Unknown) as caught:
        parse_page(document)

    assert caught.value.code == "box_response_invalid"


ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)
)
FIELDS = st.sampled_from(
    [
        "name",
        "state",
        "status",
        "setupStatus",
        "setup_error",
        "createdAt",
        "archiveAfter",
        "usage",
        "settledCostMicrousd",
    ]
)


@unhurried
@given(st.dictionaries(FIELDS, ODD | st.dictionaries(FIELDS, ODD, max_size=2)))
def test_no_odd_field_of_an_entry_breaks_a_page(entry: dict[str, Any]) -> None:
    (box,) = parse_page({"boxes": [{**entry, "id": "bx_1"}]}).boxes

    assert box.id == "bx_1"


def test_every_page_is_read_and_each_box_is_listed_once() -> None:
    listing = read(
        page_of("a", "b", cursor="1", promised=True),
        page_of("b", "c", cursor="2", promised=True),
        page_of("d"),
    )

    assert [box.id for box in listing.boxes] == ["a", "b", "c", "d"]
    assert (listing.pages, listing.repeated) == (3, 1)


def test_an_empty_list_is_complete() -> None:
    assert read(page_of()).boxes == ()


def test_a_server_with_cursors_alone_ends_at_its_empty_page() -> None:
    listing = read(page_of("a", cursor="1"), page_of("b", cursor="2"), page_of(cursor="3"))

    assert [box.id for box in listing.boxes] == ["a", "b"]


@pytest.mark.parametrize(
    "pages",
    [
        (page_of("a", cursor="1", promised=True), page_of("b", cursor="1", promised=True)),
        (page_of("a", cursor="1", promised=True), page_of("a", cursor="2", promised=True)),
        (page_of("a", cursor="1", promised=True), page_of("a")),
        (page_of("a", cursor="1", promised=True), page_of()),
        (page_of(cursor="1", promised=True),),
        tuple(page_of(str(number), cursor=str(number), promised=True) for number in range(10)),
    ],
    ids=["same cursor", "same page", "same page at the end", "empty page", "empty first page", "no end"],
)
def test_a_list_that_does_not_go_on_is_an_invalid_answer(pages: tuple[Page, ...]) -> None:
    with pytest.raises(Unknown) as caught:
        read(*pages)

    assert caught.value.code == "box_response_invalid"


@unhurried
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), min_size=1, max_size=6))
def test_whatever_comes_the_reading_ends_with_each_box_once_or_an_error(pages: list[list[str]]) -> None:
    numbered = [
        page_of(*ids, cursor=str(number) if number < len(pages) else None, promised=number < len(pages))
        for number, ids in enumerate(pages, 1)
    ]
    try:
        listing = read(*numbered)
    except Unknown:
        return

    ids = [box.id for box in listing.boxes]
    assert len(ids) == len(set(ids))
    assert set(ids) == {box_id for page in pages for box_id in page}


def test_a_leak_beyond_the_first_page_is_seen(fake: FakeProvider, live: BoxClient) -> None:
    fake.add_boxes(220)
    fake.add_box("bx_leak", name="somebody")

    listing = live.list_all()
    assert (len(listing.boxes), listing.pages) == (221, 2)
    assert "bx_leak" in {box.id for box in listing.boxes}


def test_one_page_can_be_small(fake: FakeProvider, live: BoxClient) -> None:
    fake.add_boxes(3)
    page = live.list_page(limit=1)

    assert (len(page.boxes), page.more_promised) == (1, True)


def test_archived_boxes_are_not_asked_for(fake: FakeProvider, live: BoxClient) -> None:
    fake.add_box("bx_up")
    fake.add_box("bx_down", state="archived")

    assert [box.id for box in live.list_all().boxes] == ["bx_up"]
    assert len(live.list_all(states=None).boxes) == 2


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ({"status": 500}, Unknown, "box_provider_refused"),
        ({"status": 410, "code": "cursor_expired"}, Refused, "box_provider_refused"),
        ({"status": 429, "retry_after": 120}, RetryLater, "box_rate_limited"),
        ({"edit": lambda page: {**page, "boxes": []}}, Unknown, "box_response_invalid"),
        ({"edit": lambda page: {**page, "boxes": [{"name": "no id"}]}}, Unknown, "box_response_invalid"),
        ({"cut_json": 0.5}, Unknown, "box_response_invalid"),
        ({"html": True}, Unknown, "box_response_invalid"),
        ({"empty": True}, Unknown, "box_response_invalid"),
        ({"huge": 10_000_000}, Unknown, "box_response_invalid"),
        ({"redirect": "http://127.0.0.1:1/boxes"}, Unknown, "box_provider_refused"),
        ({"half": 0.5}, Unknown, "box_unreachable"),
        ({"drop_before": True}, Unknown, "box_unreachable"),
        ({"cursor": "MTox"}, Unknown, "box_response_invalid"),
    ],
)
def test_a_broken_page_makes_the_whole_listing_an_error(
    fake: FakeProvider, live: BoxClient, fault: dict[str, Any], kind: type[ProviderError], code: str
) -> None:
    fake.add_boxes(450)
    fake.always("GET /boxes", page=2, **fault)
    with pytest.raises(ProviderError) as caught:
        live.list_all()

    assert (type(caught.value), caught.value.code) == (kind, code)


def test_a_page_that_fails_once_is_asked_for_again(fake: FakeProvider, live: BoxClient) -> None:
    fake.add_boxes(250)
    fake.next("list", page=2, status=503)

    assert len(live.list_all().boxes) == 250
    assert fake.count("list") == 3


def test_the_whole_listing_has_a_longest_time(
    fake: FakeProvider, live: BoxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxes.client.box_client.LISTING_SECONDS", -1.0)

    with pytest.raises(Unknown):
        live.list_all()
    assert fake.count() == 0


def test_a_rate_limited_listing_is_asked_for_three_times(
    client: BoxClient, stub: responses.RequestsMock
) -> None:
    stub.get(f"{BASE}/boxes", status=429, json={})

    with pytest.raises(RetryLater):
        client.list_all()
    assert len(stub.calls) == 3
