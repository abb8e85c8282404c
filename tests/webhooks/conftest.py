"""Webhooks to a receiver on this machine, and ledger rows that something happens to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from base.pump import Holder, Outcome
from boxes.models import Box
from conversations.services import ensure_conversation
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.driver import DeliveryDriver
from openagents_site.webhooks.fan_out import fan_out
from openagents_site.webhooks.models import Delivery, Subscription
from runs.models import Run
from tests.webhooks.receiver import Receiver

BoxOf = Callable[..., Box]
RunOn = Callable[..., Run]


@pytest.fixture(autouse=True)
def webhook_settings(settings: Any) -> Callable[..., None]:
    """`webhook_settings(timeout_ms=300)` changes settings of the family; receivers of tests are on this machine."""
    settings.WEBHOOKS = {"allow_http": True, "allow_private": True}

    def change(**values: Any) -> None:
        settings.WEBHOOKS = settings.WEBHOOKS | values

    return change


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def hook(owner: User, receiver: Receiver) -> Subscription:
    """The owner's webhook to the receiver, for everything. Its secret is `secret_of(hook)`."""
    return subscriptions.create(owner, url=receiver.url)[0]


def secret_of(hook: Subscription) -> str:
    from openagents_site.webhooks import signing

    hook.refresh_from_db()
    return signing.opened(hook.pk, bytes(hook.sealed_secret))


@pytest.fixture
def box_of(db: None) -> BoxOf:
    """`box_of(owner, state="ready")` is a new row of a box."""

    def make(owner: User, **values: Any) -> Box:
        given = {"box_id": f"box_{uuid.uuid4().hex[:12]}", "state": "provisioning"} | values
        return Box.objects.create(conversation=ensure_conversation(owner), **given)

    return make


@pytest.fixture
def run_on(db: None) -> RunOn:
    """`run_on(box)` is a new row of a run."""

    def make(box: Box, **values: Any) -> Run:
        now = timezone.now()
        given: dict[str, Any] = {
            "requesting_principal": {"type": "user", "id": "tester"},
            "command": "true",
            "idempotency_key": uuid.uuid4().hex,
            "run_directory": "/tmp/run",
            "admitted_at": now,
            "deadline_at": now + timedelta(hours=1),
        }
        return Run.objects.create(conversation=box.conversation, conversation_box=box, **given | values)

    return make


def deliver(limit: int = 100) -> int:
    """What the worker does once: make deliveries of events, send what is due, and write how it went. Returns how many were sent."""
    fan_out()
    return send_due(limit)


def send_due(limit: int = 100) -> int:
    driver = DeliveryDriver()
    tasks = driver.claim(Holder(), limit)
    outcomes = [Outcome(task, answer=driver.perform(task)) for task in tasks]
    driver.settle(Holder(), outcomes)
    return len(tasks)


def hours_pass(hours: float) -> None:
    """As if so much time had passed: what is due, and since when receivers fail, moves into the past."""
    with connection.cursor() as cursor:
        for table, column in (
            ("webhook_deliveries", "next_attempt_at"),
            ("webhook_deliveries", "lease_expires_at"),
            ("webhook_subscriptions", "failing_since"),
            ("webhook_subscriptions", "previous_until"),
        ):
            cursor.execute(
                f"update {table} set {column} = {column} - make_interval(secs => %s)", [hours * 3600]
            )


def only_delivery() -> Delivery:
    return Delivery.objects.select_related("event", "subscription").get()


@pytest.fixture
def event(hook: Subscription, owner: User, box_of: BoxOf) -> Any:
    """Something to be told."""
    return box_of(owner)
