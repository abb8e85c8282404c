"""Extending a box, and the end that it shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from base.clock import database_now
from boxes import services
from boxes.errors import BoxNotFound, BoxNotReady, BoxStopped, InvalidRequest, LifetimeReached, ProviderError
from boxes.lifetime import EndRule, latest_end, lease_end
from boxes.models import Box
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import again
from tests.fakes.provider import FakeProvider

BOX_ID = "bx_8bhkse3n"
CREATED = datetime(2026, 6, 1, tzinfo=UTC)
seconds = st.integers(min_value=1, max_value=3_000_000)


@given(ttl=seconds, maximum=seconds, extended=st.none() | st.integers(min_value=-1000, max_value=4_000_000))
def test_the_end_is_never_before_the_ttl_nor_after_the_maximum(
    ttl: int, maximum: int, extended: int | None
) -> None:
    until = None if extended is None else CREATED + timedelta(seconds=extended)
    end = lease_end(CREATED, until, ttl_seconds=ttl, maximum_lifetime_seconds=maximum)

    assert end.at >= CREATED + timedelta(seconds=ttl)
    assert end.at <= latest_end(CREATED, ttl_seconds=ttl, maximum_lifetime_seconds=maximum)
    if end.because == EndRule.TTL:
        assert end.at == CREATED + timedelta(seconds=ttl)
    if end.because == EndRule.EXTENDED:
        assert end.at == until


@pytest.mark.parametrize(
    ("extended", "at", "because"),
    [(None, 3600, "ttl"), (1800, 3600, "ttl"), (5000, 5000, "extended"), (9000, 8000, "maximum_lifetime")],
)
def test_it_says_which_rule_set_the_end(extended: int | None, at: int, because: str) -> None:
    until = None if extended is None else CREATED + timedelta(seconds=extended)
    end = lease_end(CREATED, until, ttl_seconds=3600, maximum_lifetime_seconds=8000)

    assert (end.at, end.because) == (CREATED + timedelta(seconds=at), because)


@pytest.fixture
def box(make_box: MakeBox, provider: FakeProvider) -> Box:
    provider.add_box(BOX_ID)
    return make_box(BOX_ID, created_at=database_now() - timedelta(seconds=600))


@pytest.mark.django_db
class TestExtending:
    def test_it_moves_the_end_and_the_providers_own(self, box: Box, provider: FakeProvider) -> None:
        before = box.expires_at
        extended = services.extend_box(box, 1800)

        assert (extended.expires_at, extended.expires_because) == (
            before + timedelta(seconds=1800),
            "extended",
        )
        (call,) = provider.calls("patch")
        assert call.json == {"ttlSeconds": pytest.approx(3600 - 600 + 1800, abs=5)}

    def test_it_adds_up(self, box: Box, provider: FakeProvider) -> None:
        before = box.expires_at
        services.extend_box(box, 600)
        services.extend_box(box, 600)

        assert again(box).expires_at == before + timedelta(seconds=1200)

    def test_it_goes_to_the_maximum_and_no_further(
        self, box: Box, provider: FakeProvider, box_api: Callable[..., None]
    ) -> None:
        box_api(maximum_lifetime_seconds=7200)

        extended = services.extend_box(box, 10**9)

        assert extended.expires_at == box.created_at + timedelta(seconds=7200)
        assert extended.expires_because == "maximum_lifetime"
        with pytest.raises(LifetimeReached):
            services.extend_box(box, 1)
        assert provider.count("patch") == 1

    def test_a_maximum_below_the_ttl_takes_nothing_away(
        self, box: Box, provider: FakeProvider, box_api: Callable[..., None]
    ) -> None:
        box_api(maximum_lifetime_seconds=60)

        assert box.expires_at == box.created_at + timedelta(seconds=3600)
        with pytest.raises(LifetimeReached):
            services.extend_box(box, 600)

    def test_a_changed_ttl_counts_at_once(self, box: Box, box_api: Callable[..., None]) -> None:
        box_api(ttl_seconds=1)

        assert box.expires_at == box.created_at + timedelta(seconds=1)

    @pytest.mark.parametrize("amount", [0, -1, True, 1.5, "60", None])
    def test_what_is_no_number_of_seconds_is_refused(
        self, box: Box, provider: FakeProvider, amount: Any
    ) -> None:
        with pytest.raises(InvalidRequest):
            services.extend_box(box, amount)
        assert provider.count() == 0

    def test_a_stopped_box_has_no_end_and_cannot_be_extended(self, box: Box, provider: FakeProvider) -> None:
        stopped = services.stop_box(box.conversation_id, BOX_ID)

        assert (stopped.expires_at, stopped.expires_because) == (None, None)
        with pytest.raises(BoxStopped):
            services.extend_box(box, 60)

    def test_a_box_without_an_id_cannot_be_extended(self, make_box: MakeBox, provider: FakeProvider) -> None:
        with pytest.raises(BoxNotReady):
            services.extend_box(make_box(None, label="box-1"), 60)

    def test_if_the_provider_does_not_take_it_nothing_is_extended(
        self, box: Box, provider: FakeProvider
    ) -> None:
        provider.next("patch", drop_after=True)

        with pytest.raises(ProviderError):
            services.extend_box(box, 600)

        assert again(box).extended_until is None

    def test_another_extension_at_the_same_moment_adds_up_and_the_provider_hears_the_last(
        self, box: Box, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from boxes import extending

        before, move = box.expires_at, extending._move_provider_end
        others = iter([lambda: services.extend_box(Box.objects.get(pk=box.pk), 600)])

        def meanwhile(*arguments: Any) -> None:
            move(*arguments)
            assert not connection.needs_rollback
            if (other := next(others, None)) is not None:
                other()

        monkeypatch.setattr(extending, "_move_provider_end", meanwhile)
        services.extend_box(box, 1200)

        assert again(box).expires_at == before + timedelta(seconds=1800)
        assert provider.calls("patch")[-1].json == {"ttlSeconds": pytest.approx(3000 + 1800, abs=5)}


def test_a_box_whose_creation_was_refused_meanwhile_is_not_there(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", drop_before=True)
    box = services.create_box(conversation.id)
    Box.objects.filter(pk=box.pk)._raw_delete(using="default")

    with pytest.raises(BoxNotFound):
        services.extend_box(box, 60)
