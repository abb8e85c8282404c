"""Claiming, completing and giving back a stop: exactly one claimant, and one transition."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base import hooks
from base.clock import database_now
from boxes import stopping
from boxes.client import parse_box
from boxes.errors import ProviderCode, Unknown
from boxes.models import Box
from boxes.states import BoxState, StopReason
from conversations.models import Conversation
from conversations.services import ensure_conversation

pytestmark = pytest.mark.django_db
UNREACHABLE = Unknown(ProviderCode.UNREACHABLE)


@pytest.fixture
def conversation(db: None) -> Conversation:
    return ensure_conversation("stop-claims")


@pytest.fixture
def box(conversation: Conversation) -> Box:
    return Box.objects.create(
        conversation=conversation, box_id="bx_8bhkse3n", state="ready", setup_status="done"
    )


def again(box: Box) -> Box:
    return Box.objects.get(pk=box.pk)


def age_claim(box: Box, seconds: float) -> None:
    Box.objects.filter(pk=box.pk).update(stop_requested_at=database_now() - timedelta(seconds=seconds))


def answer(**fields: Any) -> Any:
    return parse_box({"state": "archiving", **fields}, "bx_8bhkse3n")


def test_it_gives_the_claim_to_exactly_one_caller(box: Box) -> None:
    first = stopping.claim_stop(again(box), StopReason.USER_REQUESTED)
    second = stopping.claim_stop(again(box), StopReason.TTL_EXPIRED)

    assert (first, second) == ("claimed", "in_flight")
    assert again(box).stop_requested_reason == "user_requested"


def test_it_says_that_a_stopped_box_is_stopped(box: Box) -> None:
    stopping.complete_stop(box, StopReason.USER_REQUESTED, answer(), by_pass=False)

    assert stopping.claim_stop(again(box), StopReason.TTL_EXPIRED) == "already_stopped"


def test_a_claim_is_not_taken_over_while_its_holder_may_live(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)
    age_claim(box, stopping.CLAIM_SECONDS - 5)

    assert stopping.claim_stop(again(box), StopReason.TTL_EXPIRED) == "in_flight"


def test_an_aged_claim_is_taken_over_once(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)
    age_claim(box, stopping.CLAIM_SECONDS + 5)

    assert stopping.claim_stop(again(box), StopReason.TTL_EXPIRED) == "claimed"
    assert stopping.claim_stop(again(box), StopReason.TTL_EXPIRED) == "in_flight"


def test_a_claim_that_was_taken_over_is_not_given_back_by_who_held_it_first(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)
    age_claim(box, stopping.CLAIM_SECONDS + 5)
    late = again(box)
    stopping.claim_stop(again(box), StopReason.TTL_EXPIRED)

    assert not stopping.withdraw_stop(late)

    assert again(box).stop_requested_reason == "ttl_expired"


def test_it_completes_with_reason_lifetime_and_a_due_settlement(box: Box) -> None:
    Box.objects.filter(pk=box.pk).update(created_at=database_now() - timedelta(seconds=90))
    stopping.claim_stop(box, StopReason.USER_REQUESTED)

    assert stopping.complete_stop(box, StopReason.USER_REQUESTED, answer(), by_pass=False)

    row = again(box)
    assert (row.state, row.stop_reason, row.stop_requested_at) == ("archiving", "user_requested", None)
    assert row.lifetime_seconds is not None
    assert 90 <= row.lifetime_seconds < 200
    assert row.usage_settled_at is None
    assert row.settled_cost_microusd is None
    assert row.stopped_at
    assert row.next_settlement_at == row.stopped_at + timedelta(seconds=2)


def test_a_stop_by_a_pass_is_settled_a_minute_later(box: Box) -> None:
    stopping.complete_stop(box, StopReason.TTL_EXPIRED, answer(), by_pass=True)

    row = again(box)
    assert row.stopped_at
    assert row.next_settlement_at == row.stopped_at + timedelta(seconds=60)


@pytest.mark.parametrize("cost", [12345, "12345"])
def test_a_cost_in_the_answer_is_settled_at_once(box: Box, cost: Any) -> None:
    stopping.complete_stop(box, StopReason.USER_REQUESTED, answer(settledCostMicrousd=cost), by_pass=False)

    row = again(box)
    assert row.settled_cost_microusd == 12345
    assert row.usage_settled_at == row.stopped_at
    assert row.next_settlement_at is None


def test_it_completes_once(box: Box) -> None:
    assert stopping.complete_stop(again(box), StopReason.USER_REQUESTED, answer(), by_pass=False)

    assert not stopping.complete_stop(
        again(box), StopReason.TTL_EXPIRED, answer(costMicrousd=1), by_pass=True
    )
    assert again(box).stop_reason == "user_requested"


def test_a_stopped_box_is_told_once_in_its_transaction(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        hooks.box_stopped, "_callables", [lambda pk: told.append((pk, connection.in_atomic_block))]
    )

    stopping.complete_stop(box, StopReason.USER_REQUESTED, answer(), by_pass=False)
    stopping.complete_stop(box, StopReason.USER_REQUESTED, answer(), by_pass=False)

    assert told == [(box.pk, True)]


def test_a_reporter_that_fails_does_not_undo_the_stop(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(pk: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("select 1 / 0")

    monkeypatch.setattr(hooks.box_stopped, "_callables", [broken])

    assert stopping.complete_stop(box, StopReason.USER_REQUESTED, answer(), by_pass=False)
    assert again(box).stop_reason == "user_requested"


def test_a_failed_stop_gives_the_claim_back(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)

    assert stopping.release_stop(box, UNREACHABLE)

    row = again(box)
    assert (row.stop_requested_at, row.stop_requested_reason, row.stopped_at) == (None, None, None)
    assert stopping.claim_stop(row, StopReason.TTL_EXPIRED) == "claimed"


def test_a_failed_stop_of_a_deleted_owners_box_goes_to_the_worker(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)
    assert not stopping.ask_stop(again(box), StopReason.OWNER_DELETED)  # it is being stopped already

    assert stopping.release_stop(box, UNREACHABLE)

    row = again(box)
    assert row.stop_requested_at is not None
    assert row.stop_requested_reason == "owner_deleted"
    assert row.next_provision_at is not None
    assert row.next_provision_at < database_now() + timedelta(seconds=6)


def test_taking_over_a_standing_stop_keeps_its_reason(box: Box) -> None:
    stopping.ask_stop(box, StopReason.BUDGET_REACHED)
    age_claim(box, stopping.CLAIM_SECONDS + 5)
    late = again(box)

    assert stopping.claim_stop(late, StopReason.TTL_EXPIRED) == "claimed"
    stopping.release_stop(late, UNREACHABLE)

    assert again(box).stop_requested_reason == "budget_reached"


def test_a_late_release_does_not_touch_the_claim_of_another(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)
    age_claim(box, stopping.CLAIM_SECONDS + 5)
    stopping.claim_stop(again(box), StopReason.TTL_EXPIRED)

    assert not stopping.release_stop(box, UNREACHABLE)

    assert again(box).stop_requested_reason == "ttl_expired"


def test_a_late_release_does_not_touch_a_stopped_box(box: Box) -> None:
    stopping.claim_stop(box, StopReason.USER_REQUESTED)
    stopping.complete_stop(again(box), StopReason.USER_REQUESTED, answer(), by_pass=False)

    assert not stopping.release_stop(box, UNREACHABLE)


def test_an_end_without_an_answer_says_archived_or_what_the_provider_showed(
    conversation: Conversation,
) -> None:
    missing, failed = (
        Box.objects.create(conversation=conversation, box_id=f"bx_{n}", state="ready", setup_status="done")
        for n in range(2)
    )

    stopping.complete_stop(
        missing,
        StopReason.USER_REQUESTED,
        stopping.StopAnswer(None, StopReason.PROVIDER_MISSING),
        by_pass=True,
    )
    stopping.complete_stop(
        failed,
        StopReason.USER_REQUESTED,
        stopping.StopAnswer(answer(state="error"), StopReason.PROVIDER_TERMINAL),
        by_pass=True,
    )

    assert (again(missing).state, again(missing).stop_reason) == (BoxState.ARCHIVED, "provider_missing")
    assert (again(failed).state, again(failed).stop_reason) == (BoxState.ERROR, "provider_terminal")


def test_the_stop_of_a_row_without_an_id_is_noted_and_does_not_age(conversation: Conversation) -> None:
    box = Box.objects.create(
        conversation=conversation,
        label="box-1",
        create_key="k",
        create_body={},
        create_attempts=1,
        generation=1,
    )

    assert stopping.claim_stop(box, StopReason.USER_REQUESTED) == "in_flight"
    age_claim(box, 10 * stopping.CLAIM_SECONDS)

    assert stopping.claim_stop(again(box), StopReason.TTL_EXPIRED) == "in_flight"
    assert again(box).stop_requested_reason == "user_requested"
    assert again(box).generation == 1  # whoever creates it keeps the row


def test_a_reservation_that_nobody_asked_for_ends_at_once_and_costs_nothing(
    conversation: Conversation,
) -> None:
    box = Box.objects.create(conversation=conversation, label="box-1", create_key="k", create_body={})

    assert stopping.claim_stop(box, StopReason.USER_REQUESTED) == "already_stopped"

    row = again(box)
    assert (row.stop_reason, row.settled_cost_microusd, row.box_id) == ("user_requested", 0, None)
    assert row.usage_settled_at == row.stopped_at
