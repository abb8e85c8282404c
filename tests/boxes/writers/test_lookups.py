"""Finding a box by our id, the provider's id or its label, and nobody else's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from base.clock import database_now
from boxes import selectors, services
from boxes.errors import BoxNotFound
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import delete_conversation
from tests.boxes.writers.conftest import MakeBox

pytestmark = pytest.mark.django_db


@pytest.fixture
def box(make_box: MakeBox) -> Box:
    return make_box("bx_8bhkse3n", label="web")


def test_it_finds_a_box_by_each_of_its_names(box: Box) -> None:
    for ref in (box.pk, str(box.pk), str(box.pk).upper(), "bx_8bhkse3n", "web"):
        assert services.get_box(box.conversation_id, ref) == box


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "nothing",
        "Web",
        "we",
        "bx_",
        "we\0b",
        "\0",
        "x" * 10_000,
        "00000000-0000-4000-8000-000000000000",
        "日本",
    ],
)
def test_what_means_no_box_is_not_found(box: Box, ref: str) -> None:
    with pytest.raises(BoxNotFound):
        services.get_box(box.conversation_id, ref)


def test_a_label_used_again_means_the_active_box(box: Box, make_box: MakeBox) -> None:
    Box.objects.filter(pk=box.pk).update(
        stopped_at=database_now(), created_at=database_now() + timedelta(hours=1)
    )
    active = make_box("bx_new", label="web")

    assert services.get_box(box.conversation_id, "web") == active
    assert services.get_box(box.conversation_id, "bx_8bhkse3n") == box


def test_a_label_of_stopped_boxes_means_the_last(make_box: MakeBox) -> None:
    now = database_now()
    for number in range(3):
        last = make_box(
            f"bx_{number}", label="web", stopped_at=now, created_at=now + timedelta(seconds=number)
        )

    assert services.get_box(last.conversation_id, "web") == last


def test_our_id_comes_before_the_providers_and_that_before_a_label(make_box: MakeBox) -> None:
    first = make_box("bx_1", label="a")
    by_provider_id = make_box(str(first.pk), label="b")
    make_box("bx_3", label=str(first.pk))
    make_box("bx_4", label="bx_1")

    assert services.get_box(first.conversation_id, first.pk) == first
    assert services.get_box(first.conversation_id, "bx_1") == first
    assert services.get_box(first.conversation_id, "b") == by_provider_id


def test_a_box_of_another_owner_is_not_there(
    box: Box, stranger: User, other_conversation: Conversation
) -> None:
    for ref in (box.pk, "bx_8bhkse3n", "web"):
        assert selectors.find(other_conversation.pk, ref) is None
        assert selectors.find_owned(stranger, ref) is None
        assert selectors.find_anywhere(ref) == box


def test_a_deleted_conversation_has_no_boxes_to_look_at(
    box: Box, owner: User, conversation: Conversation
) -> None:
    assert list(selectors.of_user(owner)) == [box]
    delete_conversation(conversation)

    assert list(selectors.of_user(owner)) == []


@pytest.mark.parametrize("number", [1, 20])
def test_looking_costs_the_same_however_many_there_are(
    make_box: MakeBox, conversation: Conversation, django_assert_num_queries: Any, number: int
) -> None:
    for each in range(number):
        make_box(f"bx_{each}", label=f"box-{each}")

    with django_assert_num_queries(1):
        selectors.find(conversation.id, "box-0")
    with django_assert_num_queries(1):
        boxes = list(selectors.of_conversation(conversation.id))
    assert len(boxes) == number
