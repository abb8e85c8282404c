"""Deleting an owner: boxes are stopped, whatever fails, and the ledger keeps its rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import ProtectedError

from accounts.models import User
from accounts.services import delete_user
from boxes import services
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import delete_conversation, ensure_conversation
from tests.boxes.writers.driving import again, drive, pass_time, run_driver
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


@pytest.fixture
def boxes(conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]) -> list[Box]:
    """One that is ready, one that is being created, one whose answer was lost."""
    box_api(default_maximum_active_boxes=4)
    ready = services.create_box(conversation.id)
    drive()
    starting = services.create_box(conversation.id)
    provider.next("create", drop_after=True)
    return [ready, starting, services.create_box(conversation.id)]


def test_deleting_a_user_stops_every_box(boxes: list[Box], owner: User, provider: FakeProvider) -> None:
    delete_user(owner)
    pass_time(10)
    drive()

    assert {again(box).stop_reason for box in boxes} == {"owner_deleted"}
    assert provider.billing() == []
    assert len(provider.existing()) == 3


def test_deleting_a_conversation_stops_every_box(
    boxes: list[Box], conversation: Conversation, provider: FakeProvider
) -> None:
    delete_conversation(conversation)
    pass_time(10)
    drive()

    assert {again(box).stop_reason for box in boxes} == {"owner_deleted"}
    assert provider.billing() == []


def test_a_provider_that_fails_is_asked_until_it_stops_them(
    boxes: list[Box], owner: User, provider: FakeProvider
) -> None:
    provider.always("stop", status=500)
    delete_user(owner)
    for _ in range(3):
        pass_time(301)
        run_driver()
    assert Box.objects.filter(stopped_at=None).count() == 3
    provider.heal()
    pass_time(301)
    drive()

    assert provider.billing() == []
    assert not Box.objects.filter(stopped_at=None).exists()


def test_boxes_of_another_owner_stay(
    boxes: list[Box], owner: User, other_conversation: Conversation, provider: FakeProvider
) -> None:
    other = services.create_box(other_conversation.id)
    delete_user(owner)
    drive()

    assert again(other).stop_requested_at is None


def test_the_next_conversation_begins_without_boxes(
    boxes: list[Box], owner: User, conversation: Conversation
) -> None:
    delete_conversation(conversation)

    assert services.list_boxes(ensure_conversation(owner).id) == []


def test_a_conversation_with_boxes_cannot_be_deleted_as_a_row(
    boxes: list[Box], conversation: Conversation
) -> None:
    with pytest.raises(ProtectedError):
        conversation.delete()
