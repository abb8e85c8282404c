"""Stopping a box: what its owner sees, and what happens when the provider or the process fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from base import faults
from base.faults import FaultRaised
from boxes import services, stopping
from boxes.errors import BoxNotFound, BoxStopped, ProviderError
from boxes.models import Box
from boxes.states import StopReason
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import again, drive, pass_time, run_driver
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
BOX_ID = "bx_8bhkse3n"


@pytest.fixture
def box(make_box: MakeBox, provider: FakeProvider) -> Box:
    """A ready box of the owner's, in the ledger and at the provider."""
    provider.add_box(BOX_ID, name=services.provider_ownership_marker(), age=100)
    return make_box(BOX_ID, label="web")


def test_it_stops_the_box_and_frees_its_place(box: Box, provider: FakeProvider) -> None:
    stopped = services.stop_box(box.conversation_id, "web")

    assert (stopped.state, stopped.stop_reason) == ("archiving", "user_requested")
    assert provider.billing() == []


@pytest.mark.parametrize("ref", ["web", BOX_ID, "id"])
def test_every_name_of_the_box_will_do(box: Box, ref: str) -> None:
    assert services.stop_box(box.conversation_id, str(box.pk) if ref == "id" else ref).stopped_at


def test_an_unknown_box_is_not_owned(conversation: Conversation, provider: FakeProvider) -> None:
    with pytest.raises(BoxNotFound) as refused:
        services.stop_box(conversation.id, "nothing")

    assert refused.value.code == "box_not_owned"


def test_another_owners_box_is_not_owned_and_nobody_is_asked(
    box: Box, other_conversation: Conversation, provider: FakeProvider
) -> None:
    with pytest.raises(BoxNotFound):
        services.stop_box(other_conversation.id, BOX_ID)

    assert provider.count() == 0


def test_a_stopped_box_is_refused(box: Box, provider: FakeProvider) -> None:
    services.stop_box(box.conversation_id, "web")

    with pytest.raises(BoxStopped):
        services.stop_box(box.conversation_id, BOX_ID)
    assert provider.count("stop") == 1


def test_a_stop_in_flight_answers_with_the_row(box: Box, provider: FakeProvider) -> None:
    stopping.claim_stop(again(box), StopReason.TTL_EXPIRED)

    row = services.stop_box(box.conversation_id, "web")

    assert row.stop_requested_at is not None
    assert row.stopped_at is None
    assert provider.count() == 0


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"status": 500}, "box_provider_refused"),
        ({"drop_before": True}, "box_unreachable"),
        ({"status": 401, "code": "unauthorized"}, "box_unauthorized"),
        ({"status": 403, "code": "forbidden"}, "box_billing_required"),
        ({"status": 429, "code": "rate_limited"}, "box_rate_limited"),
        ({"status": 409, "code": "box_recent_snapshot_required"}, "box_provider_refused"),
        ({"html": True, "status": 200}, "box_response_invalid"),
    ],
    ids=str,
)
def test_a_stop_that_fails_leaves_the_box_active_and_may_be_repeated(
    box: Box, provider: FakeProvider, fault: dict[str, Any], code: str
) -> None:
    provider.next("stop", **fault)

    with pytest.raises(ProviderError) as failed:
        services.stop_box(box.conversation_id, "web")
    assert failed.value.code == code
    assert (again(box).stopped_at, again(box).stop_requested_at) == (None, None)

    assert services.stop_box(box.conversation_id, "web").stop_reason == "user_requested"


def test_a_refusal_of_a_box_that_is_up_is_a_refusal(box: Box, provider: FakeProvider) -> None:
    provider.next("stop", status=400, code="stop_failed")

    with pytest.raises(ProviderError) as failed:
        services.stop_box(box.conversation_id, "web")

    assert (failed.value.provider_code, provider.count("get")) == ("stop_failed", 1)


@pytest.mark.parametrize("state", ["archived", "error"])
def test_a_refusal_of_a_box_that_has_ended_is_its_end(box: Box, provider: FakeProvider, state: str) -> None:
    provider.boxes[BOX_ID].state = state
    provider.next("stop", status=400, code="machine_not_running")

    stopped = services.stop_box(box.conversation_id, "web")

    assert (stopped.stop_reason, stopped.state) == ("provider_terminal", state)


def test_a_box_that_is_gone_is_gone(box: Box, provider: FakeProvider) -> None:
    provider.boxes[BOX_ID].deleted = True

    stopped = services.stop_box(box.conversation_id, "web")

    assert (stopped.stop_reason, stopped.state) == ("provider_missing", "archived")


def test_one_404_to_the_stop_alone_proves_nothing(box: Box, provider: FakeProvider) -> None:
    provider.next("stop", status=404, code="not_found")

    with pytest.raises(ProviderError):
        services.stop_box(box.conversation_id, "web")

    assert again(box).stopped_at is None


@pytest.mark.parametrize("point", [stopping.STOP_CLAIMED, stopping.STOP_CALLED])
def test_a_stop_that_breaks_off_is_finished_by_the_worker_when_its_claim_has_aged(
    point: str, box: Box, provider: FakeProvider
) -> None:
    with faults.armed(point, "raise"), pytest.raises(FaultRaised):
        services.stop_box(box.conversation_id, "web")
    assert run_driver().claimed == 0
    pass_time(stopping.CLAIM_SECONDS + 1)
    drive()

    assert again(box).stop_reason == "user_requested"
    assert provider.billing() == []


def test_a_stop_that_breaks_off_can_be_asked_for_again_when_its_claim_has_aged(
    box: Box, provider: FakeProvider
) -> None:
    with faults.armed(stopping.STOP_CLAIMED, "raise"), pytest.raises(FaultRaised):
        services.stop_box(box.conversation_id, "web")
    pass_time(stopping.CLAIM_SECONDS + 1)

    assert services.stop_box(box.conversation_id, "web").stop_reason == "user_requested"


def test_a_stop_that_was_asked_for_is_tried_until_it_succeeds(box: Box, provider: FakeProvider) -> None:
    provider.next("stop", times=3, status=500)
    stopping.ask_stop(box, StopReason.OWNER_DELETED)
    for _ in range(3):
        run_driver()
        assert again(box).stop_requested_at is not None
        pass_time(301)
    assert (again(box).reconciliation_error, again(box).reconciliation_failures) == (
        "box_provider_refused",
        3,
    )

    run_driver()

    assert again(box).stop_reason == "owner_deleted"


def test_a_stop_at_the_worker_cannot_be_claimed_by_another(box: Box, provider: FakeProvider) -> None:
    stopping.ask_stop(box, StopReason.OWNER_DELETED)
    pass_time(stopping.CLAIM_SECONDS - 10)
    provider.next("stop", status=500)
    run_driver()
    pass_time(60)

    assert stopping.claim_stop(again(box), StopReason.TTL_EXPIRED) == "in_flight"


def test_a_failed_stop_lets_the_creation_go_on(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box = services.create_box(conversation.id)
    provider.next("stop", status=500)
    with pytest.raises(ProviderError):
        services.stop_box(conversation.id, box.label)
    drive()

    assert again(box).state == "ready"


def test_stopping_a_box_whose_answer_was_lost_stops_it_as_soon_as_its_id_is_known(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", drop_after=True)
    box = services.create_box(conversation.id)

    answered = services.stop_box(conversation.id, box.label)
    assert (answered.stopped_at, answered.box_id) == (None, None)
    assert answered.stop_requested_at is not None
    pass_time(10)
    drive()

    row = again(box)
    assert (row.stop_reason, row.box_id) == ("user_requested", provider.existing()[0].id)
    assert provider.existing()[0].name == services.provider_ownership_marker()
    assert provider.billing() == []


def test_a_name_that_cannot_be_given_does_not_hold_up_a_stop(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", drop_after=True)
    provider.always("patch", status=500)
    box = services.create_box(conversation.id)
    services.stop_box(conversation.id, box.label)
    for _ in range(4):
        pass_time(10)
        drive()

    assert again(box).stop_reason == "user_requested"
    assert provider.count("patch") == 1


def test_forgetting_closes_the_row_of_a_box_that_cannot_be_stopped(
    box: Box, provider: FakeProvider, staff: Any
) -> None:
    provider.boxes[BOX_ID].refuse_stop = "stop_failed"

    row = services.forget_box(box, by=staff)

    assert (row.stop_reason, row.settled_cost_microusd) == ("forgotten", None)
    assert row.history.latest("pgh_id").pgh_context == {"forgotten_by": str(staff.pk)}
    assert len(provider.billing()) == 1  # it goes on to cost, and is not hidden
    with pytest.raises(BoxStopped):
        services.forget_box(row, by=staff)
