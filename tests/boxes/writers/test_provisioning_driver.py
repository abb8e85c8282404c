"""The worker's part in a creation: retries, names, looks, and what it gives up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base import notify
from base.pump import Holder
from boxes import services
from boxes.models import Box, ReconciliationEvent
from boxes.provisioning import ProvisioningDriver
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import again, drive, pass_time, run_driver, seconds_from_now
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture
def lost(conversation: Conversation, provider: FakeProvider) -> Box:
    """A row whose creation was asked for and never answered; nothing came of it."""
    provider.next("create", drop_before=True)
    return services.create_box(conversation.id)


def test_it_asks_again_after_growing_pauses(lost: Box, provider: FakeProvider) -> None:
    provider.always("create", status=500)
    pauses = []
    for _ in range(4):
        pauses.append(round(seconds_from_now(again(lost).next_provision_at)))
        pass_time(301)
        run_driver()

    assert pauses == pytest.approx([5, 10, 20, 40], abs=2)
    assert again(lost).create_attempts == 5


def test_a_refusal_after_an_unknown_attempt_keeps_the_reservation(lost: Box, provider: FakeProvider) -> None:
    provider.next("create", status=402, code="billing_required")
    pass_time(10)
    run_driver()

    row = again(lost)
    assert (row.stopped_at, row.create_error, row.provision_failures) == (None, "box_billing_required", 2)


def test_it_does_not_ask_with_a_key_that_the_provider_may_have_forgotten(
    lost: Box, provider: FakeProvider
) -> None:
    pass_time(23.5 * 3600)
    asked = provider.count("create")

    run_driver()

    assert provider.count("create") == asked
    assert seconds_from_now(again(lost).next_provision_at) == pytest.approx(1800, abs=60)


def test_it_abandons_a_creation_that_was_not_answered_in_a_day(lost: Box, provider: FakeProvider) -> None:
    pass_time(DAY + 1)
    run_driver()

    row = again(lost)
    assert (row.stop_reason, row.box_id, row.settled_cost_microusd) == ("create_abandoned", None, None)
    assert row.usage_settled_at == row.stopped_at  # nobody can say any more what it cost
    event = ReconciliationEvent.objects.get()
    assert (event.event_type, event.box, event.handled_at) == ("create_abandoned", row, None)


def test_an_answer_after_the_row_was_closed_still_claims_the_box(lost: Box, provider: FakeProvider) -> None:
    driver = ProvisioningDriver()
    pass_time(10)
    (task,) = driver.claim(Holder(), 10)
    answer = driver.perform(task)
    from boxes.ending import end_row
    from boxes.states import BoxState, StopReason

    end_row(
        lost, state=BoxState.ERROR, reason=StopReason.FORGOTTEN, cost_microusd=None, settle_after_seconds=0
    )

    from base.pump import Outcome

    driver.settle(Holder(), [Outcome(task, answer)])

    row = again(lost)
    assert row.box_id == provider.existing()[0].id  # so that it is no leak when it is seen, and is stopped
    assert row.stop_reason == "forgotten"


def test_a_worker_that_lost_its_lease_writes_nothing(lost: Box, provider: FakeProvider) -> None:
    from base.pump import Outcome

    slow, quick = ProvisioningDriver(), ProvisioningDriver()
    pass_time(10)
    (old,) = slow.claim(Holder(), 10)
    pass_time(61)
    (new,) = quick.claim(Holder(), 10)

    slow.settle(Holder(), [Outcome(old, error=RuntimeError("late"))])
    assert again(lost).generation == new.generation
    assert again(lost).provision_failures == 1  # that of the first attempt

    quick.settle(Holder(), [Outcome(new, quick.perform(new))])
    slow.settle(Holder(), [Outcome(old, slow.perform(old))])
    assert again(lost).box_id == provider.existing()[0].id
    assert len(provider.existing()) == 1


def test_what_the_worker_needs_is_leased_to_one(lost: Box) -> None:
    pass_time(10)

    assert len(ProvisioningDriver().claim(Holder(), 10)) == 1
    assert ProvisioningDriver().claim(Holder(), 10) == []


def test_it_waits_as_long_as_the_provider_asks_and_does_not_count_it(
    conversation: Conversation, provider: FakeProvider
) -> None:
    box = services.create_box(conversation.id)
    provider.next("GET /boxes/{id}", status=429, retry_after=120)
    run_driver()

    row = again(box)
    assert seconds_from_now(row.next_provision_at) == pytest.approx(120, abs=5)
    assert (row.ready_checks, row.provision_failures) == (0, 0)


def test_one_pause_that_was_asked_for_holds_for_all(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(default_maximum_active_boxes=4)
    boxes = [services.create_box(conversation.id) for _ in range(3)]
    provider.always("GET /boxes/{id}", status=429, retry_after=120)
    driver = ProvisioningDriver()
    run_driver(driver)
    asked = provider.count("get")
    Box.objects.update(next_provision_at=boxes[0].created_at)
    run_driver(driver)

    assert provider.count("get") == asked  # not one request more until then
    assert all(again(box).provision_failures == 0 for box in boxes)


def test_a_look_that_fails_is_repeated_until_the_attempts_are_used_up(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(poll_attempts=3)
    provider.always("GET /boxes/{id}", status=500)

    box = services.create_box(conversation.id)
    for _ in range(6):
        pass_time(301)
        run_driver()

    row = again(box)
    assert (row.ready_checks, row.next_provision_at, row.stopped_at) == (3, None, None)
    assert row.create_error == "box_provider_refused"


def test_a_setup_that_failed_is_shown_as_it_is(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(setup_script="exit 1")
    failed = {"state": "ready", "setupStatus": "failed"}
    provider.always("GET /boxes/{id}", edit=lambda body: {**body, "box": {**body["box"], **failed}})

    box = services.create_box(conversation.id)
    drive()

    assert (again(box).state, again(box).setup_status) == ("ready", "failed")


def test_a_box_with_a_setup_script_is_not_ready_before_its_setup_is_over(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(setup_script="sleep 1", poll_attempts=3)
    pending = {"state": "ready", "setupStatus": None}
    provider.always("GET /boxes/{id}", edit=lambda body: {**body, "box": {**body["box"], **pending}})

    box = services.create_box(conversation.id)
    drive()

    assert (again(box).setup_status, provider.count("get")) == ("pending", 3)


def test_a_box_that_fails_while_it_starts_is_looked_at_no_more(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.always("GET /boxes/{id}", edit=lambda body: {**body, "box": {**body["box"], "state": "error"}})

    box = services.create_box(conversation.id)
    drive()

    assert (again(box).state, provider.count("get")) == ("error", 1)


def test_a_look_does_not_write_over_a_stop(conversation: Conversation, provider: FakeProvider) -> None:
    from base.pump import Outcome

    box = services.create_box(conversation.id)
    driver = ProvisioningDriver()
    (task,) = driver.claim(Holder(), 10)
    seen = driver.perform(task)
    services.stop_box(conversation.id, box.label)

    driver.settle(Holder(), [Outcome(task, seen)])

    assert again(box).state == "archiving"


def test_an_old_row_of_the_ledger_is_no_business_of_the_worker(
    make_box: MakeBox, provider: FakeProvider
) -> None:
    make_box("bx_adopted", state="provisioning", setup_status="pending")

    assert run_driver().claimed == 0
    assert ProvisioningDriver().seconds_until_due() is None


def test_it_knows_when_the_next_row_is_due(lost: Box) -> None:
    assert ProvisioningDriver().seconds_until_due() == pytest.approx(5, abs=2)


def test_one_row_that_cannot_be_written_does_not_hold_up_another(
    conversation: Conversation,
    provider: FakeProvider,
    box_api: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from boxes.provisioning import ledger

    box_api(default_maximum_active_boxes=4)
    provider.next("create", drop_before=True)
    bad = services.create_box(conversation.id)
    Box.objects.filter(pk=bad.pk).update(create_attempted_at=bad.created_at - timedelta(days=2))
    good = services.create_box(conversation.id)

    def broken(box: Box) -> bool:
        raise ValueError("cannot be written")

    monkeypatch.setattr(ledger, "abandon", broken)
    pass_time(10)
    run_driver()

    assert again(good).state == "ready"
    assert again(bad).stopped_at is None


def test_the_worker_is_woken_when_there_is_something_to_do(
    transactional_db: None, provider: FakeProvider, owner: Any
) -> None:
    from conversations.services import ensure_conversation

    conversation = ensure_conversation(owner)
    with notify.own_connection() as link:
        notify.listen(link, [notify.DUE])
        services.create_box(conversation.id)
        woken = [each.payload for each in link.notifies(timeout=10, stop_after=1)]

    assert woken == ["provisioning"]
    assert not connection.in_atomic_block
