"""What others do while a pass is asking the provider: nothing that changed meanwhile is written over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base.clock import database_now
from boxes import stopping
from boxes.models import Box
from boxes.reconciler import reconcile
from boxes.states import StopReason
from runs.models import Run
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db(transaction=True)


def while_asked(provider: FakeProvider, route: str, act: Callable[[], Any], **fault: Any) -> None:
    """Let `act` happen, committed, while the provider is asked the first time; `fault` is what it answers then."""
    happened: list[bool] = []

    def once(_request: Any) -> bool:
        if happened:
            return False
        happened.append(True)
        try:
            act()
        finally:
            connection.close()
        return bool(fault)

    provider.always(route, when=once, **fault)


def shown_as(state: str) -> dict[str, Any]:
    return {"edit": lambda body: {**body, "box": {**body["box"], "state": state}}}


def test_a_box_that_is_extended_is_kept(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=3601, row={"last_activity_at": database_now()})
    later = database_now() + timedelta(hours=1)
    while_asked(provider, "get", lambda: Box.objects.update(extended_until=later))

    result = reconcile()

    assert (result.stopped, result.lost_to_others, provider.count("stop")) == (0, 1, 0)
    assert (again(box).stopped_at, again(box).stop_requested_at) == (None, None)


def test_a_box_that_is_used_is_not_idle(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=1801)
    while_asked(provider, "get", lambda: Box.objects.update(last_activity_at=database_now()))

    assert reconcile().stopped == 0
    assert (again(box).stopped_at, again(box).stop_requested_at) == (None, None)


def test_a_box_on_which_a_run_is_started_is_not_idle(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=1801)
    while_asked(provider, "get", lambda: admit_run(box))

    assert reconcile().stopped == 0
    assert (again(box).stopped_at, again(box).stop_requested_at) == (None, None)


def admit_run(box: Box) -> None:
    now = database_now()
    Run.objects.create(
        conversation_id=box.conversation_id,
        conversation_box=box,
        requesting_principal={"type": "user", "id": "1"},
        command="true",
        idempotency_key="key-1",
        run_directory="/home/user/run",
        admitted_at=now,
        deadline_at=now + timedelta(hours=1),
    )


def test_a_box_that_is_extended_and_idle_all_the_same_is_stopped_for_that(
    pair: Pair, provider: FakeProvider
) -> None:
    box = pair(age=3601)
    later = database_now() + timedelta(hours=1)
    while_asked(provider, "get", lambda: Box.objects.update(extended_until=later))

    reconcile()

    assert again(box).stop_reason == "idle_timeout"


def test_a_row_that_was_stopped_is_not_written(pair: Pair, provider: FakeProvider) -> None:
    box = pair()
    ended = {"state": "archived", "stopped_at": database_now(), "stop_reason": "user_requested"}
    while_asked(provider, "get", lambda: Box.objects.update(**ended))

    result = reconcile()

    assert (result.observed, result.lost_to_others) == (0, 1)
    assert (again(box).state, again(box).last_reconciled_at) == ("archived", None)


def test_a_row_whose_stop_was_claimed_is_ended_by_the_claimant(pair: Pair, provider: FakeProvider) -> None:
    box = pair(state="archived")
    while_asked(provider, "get", lambda: stopping.claim_stop(again(box), StopReason.USER_REQUESTED))

    assert reconcile().ended == 0
    assert again(box).stopped_at is None


def test_a_row_that_the_worker_wrote_is_not_written(pair: Pair, provider: FakeProvider) -> None:
    lease = database_now() + timedelta(seconds=60)
    box = pair(row={"state": "provisioning", "lease_expires_at": lease})
    done = {"state": "ready", "lease_expires_at": None}
    while_asked(provider, "get", lambda: Box.objects.update(**done), **shown_as("provisioning"))

    assert reconcile().lost_to_others == 1
    assert again(box).state == "ready"


def test_a_listing_that_is_older_than_the_row_is_no_evidence(
    pair: Pair, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(reconcile_evidence="list")
    box = pair(row={"state": "provisioning"})
    while_asked(provider, "list", lambda: Box.objects.update(state="ready"), **listed_as("provisioning"))

    reconcile()

    assert (again(box).state, provider.count("get")) == ("ready", 1)


def listed_as(state: str) -> dict[str, Any]:
    return {"edit": lambda body: {**body, "boxes": [{**box, "state": state} for box in body["boxes"]]}}


def test_a_box_that_was_bound_after_the_listing_is_no_leak_and_not_missing(
    make_row: Pair, provider: FakeProvider
) -> None:
    reserved = {"create_key": "key-1", "create_attempts": 1, "create_attempted_at": database_now()}
    box = make_row(None, state="provisioning", **reserved)
    provider.add_box("bx_22222222", name="Box 1")
    while_asked(provider, "list", lambda: Box.objects.update(box_id="bx_22222222"))

    result = reconcile()

    assert (result.leaks, again(box).stopped_at) == (0, None)


def test_each_action_costs_a_few_statements(pair: Pair, provider: FakeProvider) -> None:
    def cost(first: int, number: int) -> int:
        for place in range(first, first + number):
            pair(f"bx_{place:08}", age=3601, row={"label": f"box-{place}"})
        with CaptureQueriesContext(connection) as queries:
            assert reconcile().stopped == number
        return len(queries)

    few, many = cost(0, 2), cost(10, 12)

    assert (many - few) / 10 <= 10


def test_the_provider_is_never_asked_within_a_transaction(pair: Pair, provider: FakeProvider) -> None:
    pair(age=3601)
    idle_in_transaction: list[int] = []

    def look(_request: Any) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and state like 'idle in transaction%' and pid <> pg_backend_pid()"
            )
            idle_in_transaction.extend(cursor.fetchone())
        connection.close()
        return False

    provider.always("*", when=look)
    reconcile()

    assert idle_in_transaction == [0, 0, 0]
