"""The stops of a pass: once each, whoever else is at them, and whatever the provider answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from base.clock import database_now
from boxes import services, stopping
from boxes.models import Box
from boxes.reconciler import reconcile
from boxes.states import StopReason
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_repeated_passes_stop_once(pair: Pair, provider: FakeProvider, evidence: str) -> None:
    pair(age=3601, stop_takes=60)

    for _ in range(3):
        reconcile()

    assert provider.count("stop") == 1


def test_a_stop_that_somebody_else_is_at_is_left_to_them(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=3601)
    assert stopping.claim_stop(box, StopReason.USER_REQUESTED) == "claimed"

    reconcile()

    assert provider.count("stop") == 0
    assert again(box).stopped_at is None


def test_a_stop_whose_claimant_died_is_taken_over(pair: Pair, provider: FakeProvider) -> None:
    box = pair(row={"stop_requested_reason": "user_requested"})
    Box.objects.update(stop_requested_at=database_now() - timedelta(seconds=91))

    reconcile()

    assert again(box).stop_reason == "user_requested"
    assert provider.billing() == []


def test_a_stop_that_fails_for_an_hour_and_then_works_ends_the_bill_once(
    pair: Pair, provider: FakeProvider
) -> None:
    box = pair(age=3601, refuse_stop="stop_failed")
    for failures in range(1, 5):
        assert reconcile().stopped == 0
        row = again(box)
        assert (row.stopped_at, row.stop_requested_at, row.reconciliation_failures) == (None, None, failures)
        assert row.reconciliation_error == "box_provider_refused"
        Box.objects.update(next_reconciliation_at=None)
    provider.boxes["bx_8bhkse3n"].refuse_stop = None

    assert reconcile().stopped == 1

    row = again(box)
    assert (row.stop_reason, row.reconciliation_failures) == ("ttl_expired", 0)
    assert row.stopped_at is not None
    assert row.lifetime_seconds == int((row.stopped_at - row.created_at).total_seconds())


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"status": 500}, "box_provider_refused"),
        ({"status": 403, "code": "forbidden"}, "box_billing_required"),
        ({"status": 401}, "box_unauthorized"),
        ({"html": True}, "box_response_invalid"),
        ({"drop_before": True}, "box_unreachable"),
        ({"status": 409, "code": "box_recent_snapshot_required"}, "box_provider_refused"),
        ({"redirect": "https://example.com/"}, "box_provider_refused"),
        ({"huge": 10 << 20}, "box_response_invalid"),
    ],
)
def test_one_stop_that_fails_holds_up_nothing(
    pair: Pair, provider: FakeProvider, fault: dict[str, Any], code: str
) -> None:
    bad = pair("bx_22222222", age=3700)
    good = pair("bx_22222223", age=3601, row={"label": "good"})
    leak = provider.add_box("bx_22222224", name=services.provider_ownership_marker(), age=3600)
    provider.next("stop", box="bx_22222222", **fault)

    result = reconcile()

    assert (result.stopped, result.failed, result.leaks_stopped, result.incomplete) == (1, 1, 1, True)
    row = again(bad)
    assert (row.stop_requested_at, row.reconciliation_failures, row.reconciliation_error) == (None, 1, code)
    assert again(good).stopped_at is not None
    assert not leak.is_billing


def test_a_stop_whose_answer_is_lost_is_not_done_twice(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=3601)
    provider.next("stop", drop_after=True)
    reconcile()
    assert again(box).stopped_at is None

    Box.objects.update(next_reconciliation_at=None)
    reconcile()

    assert again(box).stopped_at is not None
    assert provider.count("stop") == 1
