"""What the provider's refusals and lost answers do to a plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from base.clock import database_now
from boxes import fanout
from boxes.models import Box
from conversations.models import Conversation
from tests.boxes.writers.driving import drive, pass_time, run_driver
from tests.boxes.writers.plans import admit, pass_queue_time, reasons, states
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_a_refusal_about_billing_puts_the_item_and_the_rest_back(
    conversation: Conversation,
    provider: FakeProvider,
    box_api: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from boxes.provisioning import ProvisioningDriver

    monkeypatch.setattr(ProvisioningDriver, "slots", 1)
    box_api(default_maximum_active_boxes=4)
    request = admit(conversation, 3)
    Box.objects.exclude(label="box-1").update(next_provision_at=database_now() + timedelta(minutes=1))
    provider.next("create", status=402, code="billing_required")
    run_driver()

    assert states(request) == ["queued"] * 3
    assert reasons(request) == ["provider_billing_required"] * 3
    assert not Box.objects.exists()
    assert provider.count("create") == 1


def test_a_refusal_about_one_item_puts_back_that_one(
    conversation: Conversation, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    request = admit(conversation, 2)
    Box.objects.filter(label="box-2").update(next_provision_at=database_now() + timedelta(minutes=1))
    provider.next("create", status=503, code="no_ready_machine")
    run_driver()

    assert states(request) == ["queued", "admitted"]
    assert reasons(request) == ["box_provider_refused", None]
    request.refresh_from_db()
    assert (request.admitted_count, request.queued_count) == (1, 1)


def test_what_the_provider_refused_is_tried_again_after_a_pause(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 1)
    provider.next("create", status=429, code="rate_limited", retry_after=90)
    drive()
    assert reasons(request) == ["provider_rate_limited"]

    assert fanout.promote_queued() == 0
    pass_queue_time(91)
    assert fanout.promote_queued() == 1
    drive()

    assert request.items.get().box.state == "ready"
    assert len(provider.existing()) == 1


def test_an_answer_that_was_lost_keeps_the_item_admitted(
    conversation: Conversation, provider: FakeProvider
) -> None:
    request = admit(conversation, 1)
    provider.next("create", drop_after=True)
    run_driver()
    pass_time(10)
    drive()

    assert states(request) == ["admitted"]
    assert [made.id for made in provider.existing()] == [request.items.get().box.box_id]
