"""Whoever goes through a list meets each row once, however many were made at one moment, and whatever comes and goes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from boxes.models import Box
from conversations.services import ensure_conversation

pytestmark = pytest.mark.django_db
LIST = "/api/v1/boxes?state=ready&page_size=2"
NOW = timezone.now()


@pytest.fixture
def add(owner: Any) -> Callable[..., str]:
    """Adds a box of the owner, and tells its id."""
    conversation = ensure_conversation(owner)

    def added(name: str, **given: Any) -> str:
        box = Box.objects.create(
            conversation=conversation, box_id=f"bx_{name:0>8}", label=name, setup_status="done",
            **{"state": "ready", "created_at": NOW} | given,
        )  # fmt: skip
        return str(box.pk)

    return added


def walk(
    client: Any, address: str | None, *, by: str = "next", meanwhile: Callable[[], Any] = lambda: None
) -> list[str]:
    """The ids that whoever follows the links meets; something happens after each page."""
    met: list[str] = []
    while address:
        page = client.get(address).json()
        met += [row["id"] for row in page["results"]]
        address = page[by]
        meanwhile()
        assert len(met) < 100, "it leads round and round"
    return met


def test_rows_of_one_moment_are_met_once_while_others_are_added(add: Any, owner: Any, api_of: Any) -> None:
    made = {add(f"old{number}") for number in range(7)}
    later = iter(range(100))

    met = walk(
        api_of(owner), LIST, meanwhile=lambda: add(f"new{next(later)}", created_at=NOW + timedelta(seconds=1))
    )

    assert sorted(met) == sorted(made)


def test_rows_of_one_moment_are_met_once_while_others_go(add: Any, owner: Any, api_of: Any) -> None:
    newer = [add(f"new{number}", created_at=NOW + timedelta(seconds=1)) for number in range(2)]
    made = {add(f"old{number}") for number in range(5)}

    met = walk(api_of(owner), LIST, meanwhile=lambda: Box.objects.filter(pk__in=newer).update(state="idle"))

    assert sorted(met) == sorted(made | set(newer))


def test_a_row_that_goes_takes_none_of_its_moment_with_it(add: Any, owner: Any, api_of: Any) -> None:
    made = {add(f"old{number}") for number in range(5)}
    client = api_of(owner)
    first = client.get(LIST).json()

    Box.objects.filter(pk=first["results"][0]["id"]).update(state="idle")

    assert len({row["id"] for row in first["results"]} | set(walk(client, first["next"]))) == len(made)


def test_the_way_back_meets_the_same(add: Any, owner: Any, api_of: Any) -> None:
    made = [add(f"old{number}", created_at=NOW + timedelta(seconds=number // 3)) for number in range(7)]
    client, last = api_of(owner), LIST
    while following := client.get(last).json()["next"]:
        last = following

    met = walk(client, last, by="previous")

    assert sorted(met) == sorted(made)


def test_a_page_from_which_all_have_gone_leads_to_the_others(add: Any, owner: Any, api_of: Any) -> None:
    made = [add(f"old{number}", created_at=NOW - timedelta(seconds=number)) for number in range(3)]
    client = api_of(owner)
    behind = client.get(LIST).json()["next"]
    before = client.get(behind).json()["previous"]

    Box.objects.filter(pk=made[2]).update(state="idle")
    empty = client.get(behind).json()
    assert (empty["results"], empty["next"]) == ([], None)
    assert walk(client, empty["previous"], by="previous") == made[:2]

    Box.objects.exclude(pk=made[2]).update(state="idle")
    Box.objects.filter(pk=made[2]).update(state="ready")
    empty = client.get(before).json()
    assert (empty["results"], empty["previous"]) == ([], None)
    assert walk(client, empty["next"]) == made[2:]
