"""Many at once, in transactions of their own: limits hold exactly, and nobody waits for another's provider call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import psycopg
import pytest
from django.db import connection

from accounts.models import User
from accounts.services import upsert_github_user
from base import notify
from base.locks import key_of
from boxes import services
from boxes.errors import BoxError
from boxes.models import Box, Installation
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Call all at the same moment, each in a thread with a connection of its own; what each returned or raised."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return call()
        except BoxError as error:
            return error.code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@contextmanager
def locked_by_another(name: str) -> Iterator[psycopg.Connection]:
    """Another session holds an admission lock."""
    with notify.own_connection() as link:
        link.execute("select pg_advisory_lock(%s)", [key_of(name)])
        yield link


@pytest.fixture
def conversation(owner: User) -> Conversation:
    return ensure_conversation(owner)


def test_twenty_creates_at_once_give_exactly_the_limit(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(default_maximum_active_boxes=7, maximum_active_boxes_per_owner=20)

    outcomes = at_once([lambda: services.create_box(conversation.id)] * 20)

    assert Counter(outcome for outcome in outcomes if isinstance(outcome, str)) == {"box_quota_reached": 13}
    assert len(provider.existing()) == Box.objects.filter(stopped_at=None).count() == 7
    assert sorted(Box.objects.values_list("label", flat=True)) == sorted(
        f"box-{number}" for number in range(1, 8)
    )


def test_the_installations_limit_holds_over_owners(
    provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(maximum_active_boxes_global=5)
    conversations = [
        ensure_conversation(upsert_github_user(github_id=100 + number, github_login=f"user-{number}"))
        for number in range(10)
    ]

    outcomes = at_once([lambda each=each: services.create_box(each.id) for each in conversations])

    assert Counter(outcome for outcome in outcomes if isinstance(outcome, str)) == {
        "box_global_quota_reached": 5
    }
    assert len(provider.existing()) == 5


def test_the_same_create_key_at_once_is_one_box(conversation: Conversation, provider: FakeProvider) -> None:
    outcomes = at_once([lambda: services.create_box(conversation.id, create_key="ticket")] * 8)

    assert len({box.pk for box in outcomes}) == 1
    assert len(provider.existing()) == 1


def test_one_slow_create_does_not_delay_another_users(
    conversation: Conversation, stranger: User, provider: FakeProvider
) -> None:
    other = ensure_conversation(stranger)
    with provider.hold("create") as hold, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(lambda: at_once([lambda: services.create_box(conversation.id)]))
        hold.wait_until_arrived()

        quick = services.create_box(other.id)

        assert quick.box_id is not None
        assert not slow.done()
        hold.release()
        assert slow.result(30)[0].box_id is not None


def test_a_create_waits_for_the_locks_in_their_order(
    conversation: Conversation, owner: User, provider: FakeProvider
) -> None:
    names = [f"conversation_boxes:{conversation.id}", f"owner_boxes:{owner.pk}", "global_boxes"]
    for position, name in enumerate(names):
        with locked_by_another(name) as link, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: at_once([lambda: services.create_box(conversation.id)]))
            _wait_for_a_waiter(link)

            held = {earlier: not _can_be_had(link, earlier) for earlier in names}

            assert held == {each: names.index(each) <= position for each in names}
            link.execute("select pg_advisory_unlock_all()")
            assert waiting.result(30)[0].box_id is not None
        services.stop_box(conversation.id, Box.objects.get(stopped_at=None).label)


def test_a_deletion_at_the_same_moment_finds_the_box(
    conversation: Conversation, owner: User, provider: FakeProvider
) -> None:
    """The admission holds the conversation's row, so that the deletion comes before it or after it, never between."""
    from conversations.services import ConversationNotFound, delete_conversation

    def create() -> Any:
        try:
            return services.create_box(conversation.id)
        except ConversationNotFound:
            return "conversation_not_found"

    at_once([create, lambda: delete_conversation(conversation), create])

    assert not Box.objects.filter(stopped_at=None, stop_requested_at=None).exists()


def test_the_marker_is_generated_once(provider: FakeProvider) -> None:
    markers = at_once([services.provider_ownership_marker] * 8)

    assert len(set(markers)) == 1
    assert Installation.objects.count() == 1


def _wait_for_a_waiter(link: psycopg.Connection) -> None:
    for _ in range(3000):
        row = link.execute(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        ).fetchone()
        if row and row[0]:
            return
        link.execute("select pg_sleep(0.01)")
    raise AssertionError("nobody waits for the lock")


def _can_be_had(link: psycopg.Connection, name: str) -> bool:
    """Whether a session other than the creating one could take the lock; ours counts as taken."""
    with notify.own_connection() as third:
        row = third.execute("select pg_try_advisory_lock(%s)", [key_of(name)]).fetchone()
    return bool(row and row[0])
