"""A reconcile pass against a provider whose every request is expected exactly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import requests
import responses
from django.db import connection
from django.utils import timezone

from accounts.services import upsert_github_user
from boxes import slots, usage
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from conversations.services import ensure_conversation
from openagents_site.periodic import RECONCILE, ensure_reconcile_slot, periodic_work
from openagents_site.worker import Worker
from runs.models import Run
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
BASE = "https://box-api.internal"


class Provider:
    """Answers the requests that a test expects, in their order, and fails on any other."""

    def __init__(self, mock: responses.RequestsMock) -> None:
        self.mock = mock

    def expect(
        self, method: str, path: str, *, json: Any = None, status: int = 200, body: Any = None
    ) -> None:
        answer = {"body": body} if body is not None else {"json": json if json is not None else {}}
        self.mock.add(method, f"{BASE}{path}", status=status, **answer)

    def expect_list(self, *box_ids: str, **named: str) -> None:
        entries = [
            {"id": box_id, "state": "ready", "name": provider_ownership_marker()} for box_id in box_ids
        ]
        entries += [{"id": box_id, "state": "ready", "name": name} for box_id, name in named.items()]
        self.expect("GET", "/boxes", json={"boxes": entries})

    def expect_get(self, box_id: str) -> None:
        box = {"id": box_id, "state": "ready", "name": provider_ownership_marker()}
        self.expect("GET", f"/boxes/{box_id}", json={"box": box})

    def expect_stop(self, box_id: str) -> None:
        self.expect("POST", f"/boxes/{box_id}/stop", json={"box": {"id": box_id, "state": "archiving"}})


@pytest.fixture
def provider(box_api):
    box_api(ttl_seconds=3600, idle_timeout_seconds=1800, reconciliation_interval_ms=60_000)
    registry = responses.registries.OrderedRegistry
    with responses.RequestsMock(registry=registry, assert_all_requests_are_fired=True) as mock:
        yield Provider(mock)


@pytest.fixture
def conversation(db):
    return ensure_conversation("box-reconciler-owner")


def insert_box(conversation: Any, box_id: str) -> Box:
    return Box.objects.create(conversation=conversation, box_id=box_id, state="ready", setup_status="done")


def insert_run(box: Box, key: str, state: str) -> Run:
    now = timezone.now()
    return Run.objects.create(
        conversation=box.conversation,
        conversation_box=box,
        requesting_principal={"type": "user", "id": "reconciler-test"},
        command="true",
        idempotency_key=key,
        state=state,
        run_directory=f"/home/box-user/.openagents/box-runs/{key}",
        admitted_at=now,
        started_at=now,
        deadline_at=now + timedelta(hours=1),
    )


def age_box(box: Box, seconds: int) -> None:
    Box.objects.filter(pk=box.pk).update(created_at=timezone.now() - timedelta(seconds=seconds))


def test_ttl_expiry_stops_a_box_and_records_the_reason(provider, conversation, box_api):
    box = insert_box(conversation, "bx_8bhkse3n")
    age_box(box, 3601)
    box_api(ttl_seconds=1, idle_timeout_seconds=3600)
    provider.expect_list(box.box_id)
    provider.expect_get(box.box_id)
    provider.expect_stop(box.box_id)

    assert reconcile().boxes == 1

    box.refresh_from_db()
    assert box.stopped_at
    assert box.stop_reason == "ttl_expired"
    assert box.lifetime_seconds >= 3601


def test_idle_reclamation_leaves_a_live_run_alone(provider, conversation, box_api):
    box = insert_box(conversation, "bx_8bhkse3n")
    age_box(box, 3601)
    insert_run(box, "live-run", "running")
    box_api(ttl_seconds=10_000, idle_timeout_seconds=1)
    provider.expect_list(box.box_id)
    provider.expect_get(box.box_id)

    reconcile()

    box.refresh_from_db()
    assert box.stopped_at is None


def test_provider_missing_boxes_become_terminal_and_release_capacity(provider, conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    provider.expect_list()
    provider.expect("GET", f"/boxes/{box.box_id}", status=404)

    reconcile()

    box.refresh_from_db()
    assert box.state == "archived"
    assert box.stop_reason == "provider_missing"
    assert box.stopped_at


def test_provider_terminal_state_is_adopted_without_another_stop_request(provider, conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    provider.expect_list(box.box_id)
    provider.expect("GET", f"/boxes/{box.box_id}", json={"box": {"id": box.box_id, "state": "terminated"}})

    reconcile()

    box.refresh_from_db()
    assert box.state == "archived"
    assert box.stop_reason == "provider_terminal"
    assert box.stopped_at


def test_provider_transport_failure_leaves_lifecycle_state_untouched_and_backs_off(provider, conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    provider.expect_list(box.box_id)
    for _ in range(3):
        provider.expect("GET", f"/boxes/{box.box_id}", body=requests.ConnectionError("refused"))

    reconcile()

    after = Box.objects.get(pk=box.pk)
    assert after.state == box.state
    assert after.stopped_at == box.stopped_at
    assert after.reconciliation_failures == 1
    assert after.next_reconciliation_at


def test_provider_rate_limiting_leaves_lifecycle_state_untouched_and_backs_off(provider, conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    provider.expect_list(box.box_id)
    for _ in range(3):
        provider.expect("GET", f"/boxes/{box.box_id}", status=429)

    reconcile()

    after = Box.objects.get(pk=box.pk)
    assert after.state == box.state
    assert after.stopped_at == box.stopped_at
    assert after.reconciliation_failures == 1
    assert after.reconciliation_error == "box_rate_limited"


def test_a_provider_leak_is_reported_and_stopped(provider, conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    leak_id = "bx_8bhkse4n"
    provider.expect_list(box.box_id, leak_id)
    provider.expect_get(box.box_id)
    provider.expect_stop(leak_id)

    reconcile()

    event = ReconciliationEvent.objects.get(provider_box_id=leak_id)
    assert event.event_type == "leak"
    assert event.reason == "provider_box_without_ledger_claim"
    assert event.handled_at


def test_an_unmarked_provider_leak_is_reported_and_left_running(provider, conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    provider.expect_list(box.box_id, bx_foreign1="developer-box")
    provider.expect_get(box.box_id)

    reconcile()

    event = ReconciliationEvent.objects.get(provider_box_id="bx_foreign1")
    assert event.reason == "provider_box_without_ledger_claim"
    assert event.handled_at is None


def test_repeated_passes_do_not_issue_a_second_stop(provider, conversation, box_api):
    box = insert_box(conversation, "bx_8bhkse3n")
    age_box(box, 3601)
    box_api(ttl_seconds=1, idle_timeout_seconds=3600)
    provider.expect_list(box.box_id)
    provider.expect_get(box.box_id)
    provider.expect_stop(box.box_id)
    reconcile()

    provider.expect_list(box.box_id)
    reconcile()


def test_the_pass_skips_settled_stopped_history(provider, conversation):
    active = insert_box(conversation, "bx_8bhkse3p")
    settled_at = timezone.now()
    historical = insert_box(conversation, "bx_history")
    Box.objects.filter(pk=historical.pk).update(stopped_at=settled_at, usage_settled_at=settled_at)
    provider.expect_list(active.box_id)
    provider.expect_get(active.box_id)

    assert reconcile().boxes == 1


def test_usage_totals_are_readable_by_conversation_and_owner(conversation):
    box = insert_box(conversation, "bx_8bhkse3n")
    Box.objects.filter(pk=box.pk).update(
        stopped_at=timezone.now(), lifetime_seconds=90, settled_cost_microusd=12_345
    )

    totals = usage.for_conversation(conversation.id)

    assert {"lifetime_seconds": 90, "settled_cost_microusd": 12_345, "boxes": 1}.items() <= totals.items()


def test_usage_totals_include_boxes_owned_by_a_user(db):
    user = upsert_github_user(
        github_id=81_109,
        github_login="reconciler-owner",
        github_avatar_url="https://avatars.githubusercontent.com/u/81109?v=4",
    )
    box = insert_box(ensure_conversation(user), "bx_8bhkse3n")
    Box.objects.filter(pk=box.pk).update(
        stopped_at=timezone.now(), lifetime_seconds=120, settled_cost_microusd=99
    )

    totals = usage.for_owner(user.id)

    assert {"lifetime_seconds": 120, "settled_cost_microusd": 99, "boxes": 1}.items() <= totals.items()


@pytest.mark.django_db(transaction=True)
def test_the_reconciler_is_supervised(box_api):
    with FakeProvider() as fake, fake.hold("list") as hold:
        box_api(**fake.settings, reconciliation_interval_ms=60_000)
        ensure_reconcile_slot()
        slot = slots.ScheduleSlot.objects.get(name=RECONCILE)
        assert slot.interval_ms == 60_000
        assert slot.initial_delay_ms == 60_000
        assert 59 < slots.seconds_until_due(RECONCILE) <= 60

        slots.ScheduleSlot.objects.update(next_at=timezone.now())
        with running_worker() as worker:
            hold.wait_until_arrived()
            slot.refresh_from_db()
            assert slot.lease_owner == worker.number
            assert slot.lease_expires_at > timezone.now()
            hold.release()

    slot.refresh_from_db()
    assert (slot.lease_owner, slot.failures, slot.outcome["boxes"]) == (None, 0, 0)
    assert slots.seconds_until_due(RECONCILE) > 50


@contextmanager
def running_worker() -> Iterator[Worker]:
    """A worker in a thread, with the passes of the product; it has ended when the context is left."""
    worker = Worker([], periodic_work())

    def work() -> None:
        try:
            worker.run()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join()
        worker._passes.join()
        worker.link.close()
