"""Creating a box: reserve, ask, bind, name."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
import responses
from django.db import connection
from django.utils import timezone

from base import faults
from boxes import creation, services
from boxes.errors import BoxError, ProviderError, Refused
from boxes.models import Box, Installation
from boxes.provisioning.calls import CALLED
from conversations.models import Conversation
from conversations.services import ConversationNotFound, delete_conversation, ensure_conversation
from tests.boxes.writers.driving import again, drive
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_it_creates_binds_and_names_one_box(conversation: Conversation, provider: FakeProvider) -> None:
    box = services.create_box(conversation.id)

    made = provider.existing()
    assert [each.id for each in made] == [box.box_id]
    assert made[0].name == services.provider_ownership_marker()
    assert box.marked_at is not None
    assert box.label == "box-1"
    assert box.lease_expires_at is None  # the worker may go on


def test_it_asks_with_the_key_of_the_row_and_without_a_name(
    conversation: Conversation, provider: FakeProvider
) -> None:
    box = services.create_box(conversation.id)

    (call,) = provider.calls("create")
    assert call.headers["idempotency-key"] == box.create_key
    assert call.json == {"ttlSeconds": 3600, "noEnv": True}


@responses.activate
def test_it_sends_exactly_a_create_and_a_name(conversation: Conversation) -> None:
    base = "https://box-api.internal/boxes"
    answer = {"box": {"id": "bx_8bhkse3n", "state": "provisioning"}}
    responses.post(base, json=answer, status=202)
    responses.patch(f"{base}/bx_8bhkse3n", json=answer)

    services.create_box(conversation.id)

    sent = [
        (call.request.method, call.request.url, json.loads(call.request.body)) for call in responses.calls
    ]
    assert sent == [
        ("POST", base, {"ttlSeconds": 3600, "noEnv": True}),
        ("PATCH", f"{base}/bx_8bhkse3n", {"name": services.provider_ownership_marker()}),
    ]


def test_the_setup_script_is_part_of_the_row(
    conversation: Conversation, provider: FakeProvider, box_api: Any
) -> None:
    box_api(setup_script="echo hello")

    box = services.create_box(conversation.id)

    assert provider.calls("create")[0].json["setupScript"] == "echo hello"
    assert again(box).create_body == {"ttl_seconds": 3600, "setup_script": "echo hello"}


def test_the_worker_looks_until_it_is_ready(conversation: Conversation, provider: FakeProvider) -> None:
    box = services.create_box(conversation.id)
    drive()

    row = again(box)
    assert (row.state, row.setup_status) == ("ready", "done")
    assert row.next_provision_at is None


def test_it_leaves_a_box_that_does_not_become_ready_to_the_reconciler(
    conversation: Conversation, provider: FakeProvider, box_api: Any
) -> None:
    box_api(poll_attempts=3)
    provider.always(
        "GET /boxes/{id}", edit=lambda body: {**body, "box": {**body["box"], "state": "provisioning"}}
    )

    box = services.create_box(conversation.id)
    drive()

    assert provider.count("get") == 3
    assert again(box).next_provision_at is None
    assert again(box).stopped_at is None


@pytest.mark.parametrize(
    ("status", "body_code", "code"),
    [
        (400, "invalid_env", "box_provider_refused"),
        (401, "unauthorized", "box_unauthorized"),
        (402, "billing_required", "box_billing_required"),
        (403, "forbidden", "box_billing_required"),
        (404, "snapshot_not_found", "box_not_found"),
        (409, "account_not_ready", "box_provider_refused"),
        (422, "invalid", "box_provider_refused"),
        (429, "rate_limited", "box_rate_limited"),
        (503, "no_ready_machine", "box_provider_refused"),
        (503, "out_of_capacity", "box_provider_refused"),
    ],
)
def test_a_refusal_of_the_provider_stores_nothing(
    conversation: Conversation, provider: FakeProvider, status: int, body_code: str, code: str
) -> None:
    provider.next("create", status=status, code=body_code)

    with pytest.raises(ProviderError) as refused:
        services.create_box(conversation.id)

    assert refused.value.code == code
    assert not Box.objects.exists()
    assert provider.existing() == []


def test_while_the_provider_wants_to_be_left_alone_nobody_asks_it_for_a_box(
    conversation: Conversation, provider: FakeProvider
) -> None:
    first = services.create_box(conversation.id, create_key="first")
    provider.next("create", status=429, code="rate_limited", retry_after=90)
    for _ in range(2):
        with pytest.raises(ProviderError) as refused:
            services.create_box(conversation.id)
        assert refused.value.code == "box_rate_limited"
        assert refused.value.retry_after_seconds == pytest.approx(90, abs=5)

    assert provider.count("create") == 2
    assert services.create_box(conversation.id, create_key="first") == first
    assert list(Box.objects.all()) == [first]


def test_it_asks_again_when_that_time_is_over(conversation: Conversation, provider: FakeProvider) -> None:
    provider.next("create", status=429, code="rate_limited", retry_after=90)
    with pytest.raises(ProviderError):
        services.create_box(conversation.id)
    Installation.objects.update(creates_held_until=timezone.now())

    assert services.create_box(conversation.id).box_id


@pytest.mark.parametrize(
    "fault",
    [
        {"drop_after": True},
        {"drop_before": True},
        {"status": 500, "after": True},
        {"status": 502},
        {"status": 504, "after": True},
        {"html": True, "status": 200, "after": True},
        {"json": {"ok": True}, "status": 202, "after": True},
        {"status": 409, "code": "idempotency_in_progress"},
        {"half": 0.5},
    ],
    ids=str,
)
def test_an_answer_that_is_no_refusal_leaves_the_box_to_the_worker(
    conversation: Conversation, provider: FakeProvider, fault: dict[str, Any]
) -> None:
    provider.next("create", **fault)

    box = services.create_box(conversation.id)
    assert (box.box_id, box.create_unknown, box.stopped_at) == (None, True, None)
    Box.objects.update(next_provision_at=box.created_at)
    drive()

    row = again(box)
    assert row.box_id is not None
    assert row.marked_at is not None
    assert row.state == "ready"
    assert [each.id for each in provider.existing()] == [row.box_id]  # one box, whatever happened
    assert {call.headers["idempotency-key"] for call in provider.calls("create")} == {row.create_key}


def test_without_a_key_nothing_is_asked_and_nothing_stored(conversation: Conversation, box_api: Any) -> None:
    box_api(api_key="")

    with pytest.raises(ProviderError) as refused:
        services.create_box(conversation.id)

    assert refused.value.code == "box_not_configured"
    assert not Box.objects.exists()


def test_a_name_that_could_not_be_given_is_given_by_the_worker(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("patch", status=500)

    box = services.create_box(conversation.id)
    assert box.box_id is not None
    assert box.marked_at is None
    Box.objects.update(next_provision_at=box.created_at)
    drive()

    assert again(box).marked_at is not None
    assert provider.existing()[0].name == services.provider_ownership_marker()


def test_a_box_that_a_worker_was_refused_meanwhile_is_a_refusal(
    conversation: Conversation, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = creation._attempt

    def attempt_and_forget(box: Box) -> None:
        attempt(box)
        Box.objects.filter(pk=box.pk)._raw_delete(using="default")

    provider.next("create", drop_before=True)
    monkeypatch.setattr(creation, "_attempt", attempt_and_forget)

    with pytest.raises(Refused):
        services.create_box(conversation.id)


def test_a_new_box_that_is_gone_while_it_is_waited_for_is_a_refusal(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", drop_before=True)
    box = services.create_box(conversation.id)
    assert not services.has_settled_in(box)
    Box.objects.filter(pk=box.pk)._raw_delete(using="default")

    with pytest.raises(Refused):
        services.has_settled_in(box)


def test_the_same_create_key_is_the_same_box(conversation: Conversation, provider: FakeProvider) -> None:
    first = services.create_box(conversation.id, create_key="ticket-1")
    second = services.create_box(conversation.id, create_key="ticket-1")

    assert first.pk == second.pk
    assert provider.count("create") == 1


def test_the_same_create_key_after_a_refusal_asks_again(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", status=402, code="billing_required")
    with pytest.raises(ProviderError):
        services.create_box(conversation.id, create_key="ticket-1")

    box = services.create_box(conversation.id, create_key="ticket-1")

    assert box.box_id is not None


def test_the_same_create_key_while_the_answer_is_unknown_waits_for_the_worker(
    conversation: Conversation, provider: FakeProvider
) -> None:
    provider.next("create", drop_after=True)
    first = services.create_box(conversation.id, create_key="ticket-1")

    second = services.create_box(conversation.id, create_key="ticket-1")

    assert (second.pk, second.box_id) == (first.pk, None)
    assert provider.count("create") == 1


def test_a_create_key_of_another_conversation_is_a_conflict(
    conversation: Conversation, other_conversation: Conversation, provider: FakeProvider
) -> None:
    services.create_box(conversation.id, create_key="ticket-1")

    with pytest.raises(Exception, match="idempotency_conflict"):
        services.create_box(other_conversation.id, create_key="ticket-1")


def test_a_missing_conversation_gets_no_box(db: None, provider: FakeProvider) -> None:
    with pytest.raises(ConversationNotFound):
        services.create_box(uuid4())

    assert provider.count() == 0


def test_a_deleted_conversation_gets_no_box(conversation: Conversation, provider: FakeProvider) -> None:
    delete_conversation(conversation)

    with pytest.raises(ConversationNotFound):
        services.create_box(conversation.id)


def test_a_browser_without_an_account_gets_a_box(db: None, provider: FakeProvider) -> None:
    box = services.create_box(ensure_conversation("browser").id)

    assert box.box_id is not None


def test_an_id_that_another_row_has_is_not_taken_twice(
    conversation: Conversation, provider: FakeProvider, make_box: Any
) -> None:
    other = make_box("bx_taken")
    provider.always(
        "create", edit=lambda body: {**body, "box": {**body["box"], "id": "bx_taken"}, "id": "bx_taken"}
    )

    box = services.create_box(conversation.id)

    assert (box.box_id, box.create_error) == (None, "box_response_invalid")
    assert again(other).box_id == "bx_taken"


def test_an_id_that_is_too_long_is_no_id(conversation: Conversation, provider: FakeProvider) -> None:
    long_id = "b" * 5000
    provider.next("create", edit=lambda body: {**body, "box": {**body["box"], "id": long_id}})

    box = services.create_box(conversation.id)

    assert (box.box_id, box.create_unknown) == (None, True)


def test_the_provider_is_never_asked_inside_a_transaction(
    transactional_db: None, provider: FakeProvider, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxes.client.exchange import Exchange

    seen: list[bool] = []
    send = Exchange.send
    monkeypatch.setattr(
        Exchange, "send", lambda self, call: (seen.append(connection.in_atomic_block), send(self, call))[1]
    )

    box = services.create_box(ensure_conversation(owner).id)
    services.stop_box(box.conversation_id, "box-1")

    assert seen == [False, False, False]


def test_a_stop_that_was_asked_for_while_it_is_created_is_carried_out(
    conversation: Conversation, provider: FakeProvider
) -> None:
    with faults.armed(CALLED, lambda: services.stop_box(conversation.id, "box-1") and None):
        box = services.create_box(conversation.id)

    assert (box.stop_reason, box.state) == ("user_requested", "archiving")
    assert provider.existing()[0].name == services.provider_ownership_marker()
    assert provider.billing() == []


def test_a_refusal_after_a_stop_was_asked_for_closes_the_row(
    conversation: Conversation, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxes import creation

    perform = creation.perform

    def ask_and_perform(client: Any, task: Any) -> Any:
        services.stop_box(conversation.id, "box-1")
        return perform(client, task)

    monkeypatch.setattr(creation, "perform", ask_and_perform)
    provider.next("create", status=402, code="billing_required")

    with pytest.raises(BoxError):
        services.create_box(conversation.id)

    row = Box.objects.get()
    assert (row.box_id, row.stop_reason, row.settled_cost_microusd) == (None, "user_requested", 0)
