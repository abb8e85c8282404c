"""Labels: given by counting, never given twice; or chosen, and held while in use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.clock import database_now
from boxes import labels
from boxes.errors import InvalidRequest, LabelTaken
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.states import ItemState
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox


@given(label=st.text(max_size=200))
def test_a_label_that_is_taken_can_be_stored_and_is_within_its_bounds(label: str) -> None:
    try:
        cleaned = labels.checked_label(label)
    except InvalidRequest:
        return

    assert cleaned == label.strip()
    assert 1 <= len(cleaned.encode()) <= 128
    assert labels.checked_label(cleaned) == cleaned


@pytest.mark.parametrize(
    "label", ["", "  ", "a\0b", "a\nb", "\ud800", "x" * 129, "é" * 65, None, 7, b"web", ["web"]]
)
def test_what_is_no_label_is_refused(label: Any) -> None:
    with pytest.raises(InvalidRequest):
        labels.checked_label(label)


@pytest.mark.parametrize("label", ["web", "x" * 128, "é" * 64, "日本", "box-7", "bx_8bhkse3n", "a/b c"])
def test_what_is_a_label_is_kept_as_it_is(label: str) -> None:
    assert labels.checked_label(label) == label


@pytest.mark.parametrize(
    "given_labels", [None, "ab", ["a"], ["a", "b", "c"], ["a", ""], ["a", None], {"a": 1, "b": 2}, b"ab"]
)
def test_a_plan_needs_exactly_as_many_labels(given_labels: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        labels.checked_labels(given_labels, 2)

    assert refused.value.code == "invalid_box_labels"


def test_labels_of_a_plan_are_different() -> None:
    with pytest.raises(LabelTaken):
        labels.checked_labels(["web", " web "], 2)


@pytest.mark.django_db
class TestNumbers:
    def test_numbers_begin_with_one(self, conversation: Conversation) -> None:
        assert labels.next_labels(conversation.id, 3) == ["box-1", "box-2", "box-3"]

    def test_numbers_of_stopped_boxes_are_not_given_again(
        self, conversation: Conversation, make_box: MakeBox
    ) -> None:
        make_box("bx_1", label="box-7", stopped_at=database_now())

        assert labels.next_labels(conversation.id, 1) == ["box-8"]

    @pytest.mark.parametrize("state", ItemState.values)
    def test_numbers_of_planned_boxes_are_not_given_again(
        self, conversation: Conversation, state: str
    ) -> None:
        request = FanoutRequest.objects.create(
            conversation=conversation, requesting_principal={}, requested_count=1, effective_limits={}
        )
        FanoutItem.objects.create(
            request=request, conversation=conversation, position=0, queue_sequence=1, label="box-4", state=state,
            requesting_principal={},
        )  # fmt: skip

        assert labels.next_labels(conversation.id, 1) == ["box-5"]

    def test_numbers_of_another_conversation_do_not_count(
        self, conversation: Conversation, other_conversation: Conversation, make_box: MakeBox
    ) -> None:
        make_box("bx_1", label="box-7", conversation=other_conversation)

        assert labels.next_labels(conversation.id, 1) == ["box-1"]

    @pytest.mark.parametrize(
        "label", ["box-", "box-x", "box-1x", "xbox-9", "Box-9", "box--9", "box-٩", "box-9 "]
    )
    def test_only_whole_numbers_count(
        self, conversation: Conversation, make_box: MakeBox, label: str
    ) -> None:
        make_box("bx_1", label=label)

        assert labels.next_labels(conversation.id, 1) == ["box-1"]

    @pytest.mark.parametrize("digits", [17, 18, 19, 40, 124])
    def test_a_chosen_label_with_a_huge_number_breaks_nothing(
        self, conversation: Conversation, make_box: MakeBox, digits: int
    ) -> None:
        make_box("bx_1", label="box-" + "9" * digits)
        given_labels = labels.next_labels(conversation.id, 2)
        for number, label in enumerate(given_labels):
            make_box(f"bx_new{number}", label=label)

        assert not set(labels.next_labels(conversation.id, 2)) & set(
            Box.objects.values_list("label", flat=True)
        )

    @pytest.mark.parametrize("rows", [1, 40])
    def test_numbering_needs_the_same_statements_however_long_the_history(
        self, conversation: Conversation, make_box: MakeBox, django_assert_num_queries: Any, rows: int
    ) -> None:
        for number in range(rows):
            make_box(f"bx_{number}", label=f"box-{number}", stopped_at=database_now())

        with django_assert_num_queries(4):
            labels.next_labels(conversation.id, 5)
