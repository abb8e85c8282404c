"""Passes and deliveries with the real embedded provider, in both dialects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base import pump
from base.clock import database_now
from boxes import services
from boxes.models import Box, ReconciliationEvent, WebhookDelivery
from boxes.provisioning import ProvisioningDriver
from boxes.reconciler import reconcile
from boxes.usage.settlement import settle_due
from boxes.webhooks import LookDriver
from conversations.models import Conversation
from tests.boxes.reconciler.conftest import again
from tests.localbox.client import Http, wait_until
from tests.localbox.server import LocalboxServer

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]
PREFIXES = {"box": "/api/box/v1", "boat": "/api/v1"}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalboxServer]:
    with LocalboxServer(sandbox="plain", settings={"loopback_webhooks": "1"}) as started:
        yield started


@pytest.fixture(params=["box", "boat"])
def http(request: pytest.FixtureRequest, server: LocalboxServer, settings: Any) -> Iterator[Http]:
    """localbox as the product's provider, and a client that goes behind the product's back."""
    prefix = PREFIXES[request.param]
    settings.BOX_API = settings.BOX_API | {
        "base_url": server.origin + prefix,
        "api_key": server.key,
        "dialect": request.param,
        "poll_interval_ms": 0,
    }
    client = Http(server)
    yield client
    for box in client("GET", "/boxes").json()["boxes"]:
        client("DELETE", f"/boxes/{box['id']}", headers={"X-Ascii-Confirm-Delete": box["id"]})


@pytest.fixture
def box(http: Http, conversation: Conversation) -> Box:
    made = services.create_box(conversation.id)

    def ready() -> bool:
        pump.run_once([ProvisioningDriver()])
        return again(made).state == "ready"

    wait_until(ready)
    return again(made)


def wait_for(http: Http, box_id: str | None, state: str) -> None:
    wait_until(lambda: http("GET", f"/boxes/{box_id}").json()["box"]["state"] == state)


def test_a_box_is_observed_stopped_in_time_and_settled(box: Box, http: Http) -> None:
    assert reconcile().observed == 1
    Box.objects.update(created_at=database_now() - timedelta(seconds=3601))

    assert reconcile().stopped == 1
    wait_for(http, box.box_id, "archived")
    Box.objects.update(next_settlement_at=database_now())
    settle_due()

    row = again(box)
    assert (row.stop_reason, row.usage_settled_at is not None) == ("ttl_expired", True)
    assert row.settled_cost_microusd is not None


def test_a_leak_is_stopped(http: Http, conversation: Conversation) -> None:
    made = http("POST", "/boxes").json()["box"]["id"]
    wait_for(http, made, "ready")
    http("PATCH", f"/boxes/{made}", json={"name": services.provider_ownership_marker()})

    assert reconcile().leaks == 0  # too young to be a leak
    row = ReconciliationEvent.objects.filter(provider_box_id=made)
    assert not row.exists()


def test_a_box_that_was_deleted_behind_our_back_is_written_off(box: Box, http: Http) -> None:
    http("DELETE", f"/boxes/{box.box_id}", headers={"X-Ascii-Confirm-Delete": str(box.box_id)})

    assert reconcile().ended == 1
    assert again(box).stop_reason == "provider_missing"


def test_a_delivery_ends_the_row_between_two_passes(
    box: Box, http: Http, live_server: Any, settings: Any
) -> None:
    hook = http(
        "POST", "/webhooks", json={"url": f"{live_server.url}/hooks/box", "events": ["box.archived"]}
    ).json()
    settings.BOX_API = settings.BOX_API | {"webhook_secret": hook["secret"]}
    try:
        http("POST", f"/boxes/{box.box_id}/stop")
        wait_until(WebhookDelivery.objects.exists)
        pump.run_once([LookDriver()])
    finally:
        http("DELETE", f"/webhooks/{hook['webhook']['id']}")
        connection.close()

    assert again(box).stop_reason == "provider_terminal"
