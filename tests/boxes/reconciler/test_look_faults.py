"""What a pass makes of looks that fail, and of a provider that wants to be left alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from importlib import import_module
from typing import Any

import pytest

from base.clock import database_now
from boxes.models import Box
from boxes.reconciler import looks, reconcile
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


@pytest.fixture
def fifty(pair: Pair) -> list[Box]:
    """Fifty healthy boxes of which the last is over its time."""
    boxes = [pair(f"bx_{number:08}", row={"label": f"box-{number}"}) for number in range(49)]
    return [*boxes, pair("bx_99999999", age=3601, row={"label": "expired"})]


def pauses() -> list[float]:
    now = database_now()
    return [(box.next_reconciliation_at - now).total_seconds() for box in Box.objects.all()]


@pytest.mark.parametrize(
    ("fault", "error", "failures"),
    [
        ({"drop_before": True}, "box_unreachable", 1),
        ({"half": 0.5}, "box_unreachable", 1),
        ({"status": 500}, None, 0),
        ({"status": 401}, None, 0),
        ({"status": 403}, None, 0),
        ({"html": True}, None, 0),
        ({"json": []}, None, 0),
        ({"json": {}}, None, 0),
        ({"json": {"box": {"id": "bx_other", "state": "archived"}}}, None, 0),
        ({"huge": 10 << 20}, None, 0),
        ({"redirect": "https://example.com/"}, None, 0),
        ({"status": 404, "code": "not_supported"}, None, 0),  # the route is missing, not the box
    ],
)
def test_a_look_that_fails_ends_nothing(
    pair: Pair, provider: FakeProvider, fault: dict[str, Any], error: str | None, failures: int
) -> None:
    box = pair(age=3601)
    provider.always("get", **fault)

    result = reconcile()

    row = again(box)
    assert (row.stopped_at, row.state, row.last_reconciled_at) == (None, "ready", None)
    assert (row.reconciliation_error, row.reconciliation_failures) == (error, failures)
    assert (result.failed, result.unanswered, result.incomplete) == (failures, 1 - failures, True)


def test_a_good_look_forgives_everything(pair: Pair, provider: FakeProvider) -> None:
    box = pair(row={"reconciliation_failures": 5, "reconciliation_error": "box_unreachable"})

    reconcile()

    row = again(box)
    assert (row.reconciliation_failures, row.reconciliation_error, row.next_reconciliation_at) == (
        0,
        None,
        None,
    )


def test_failures_add_up_and_the_row_is_left_alone_meanwhile(pair: Pair, provider: FakeProvider) -> None:
    box = pair()
    provider.always("get", drop_before=True)
    reconcile()
    asked = provider.count("get")
    reconcile()
    assert provider.count("get") == asked

    Box.objects.update(next_reconciliation_at=None)
    reconcile()

    assert again(box).reconciliation_failures == 2
    assert pauses() == pytest.approx([10], abs=2)


# left alone


def test_a_bare_rate_limit_costs_one_row_three_requests_and_the_others_none(
    fifty: list[Box], provider: FakeProvider
) -> None:
    provider.always("get", status=429)

    result = reconcile()

    assert (provider.count("get"), result.failed, result.deferred) == (3, 1, 49)
    assert sorted(box.reconciliation_failures for box in Box.objects.all()) == [0] * 49 + [1]
    assert Box.objects.exclude(reconciliation_error=None).get().reconciliation_error == "box_rate_limited"
    assert pauses() == pytest.approx([5] * 50, abs=2)
    assert not Box.objects.exclude(stopped_at=None).exists()


def after(seconds: float) -> str:
    return format_datetime(database_now() + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("value", ["120", "date"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_provider_that_says_when_to_come_back_is_asked_once_until_then(
    fifty: list[Box], provider: FakeProvider, status: int, value: str
) -> None:
    provider.always("get", status=status, retry_after=after(120) if value == "date" else value)

    result = reconcile()

    assert (provider.count("get"), result.failed, result.deferred) == (1, 0, 50)
    assert pauses() == pytest.approx([120] * 50, abs=3)
    assert {box.reconciliation_failures for box in Box.objects.all()} == {0}
    assert result.quiet_seconds == pytest.approx(120, abs=3)
    provider.heal()
    assert reconcile().deferred == 0  # nobody is due yet
    assert provider.count("get") == 1


def test_the_time_to_come_back_is_bounded(pair: Pair, provider: FakeProvider) -> None:
    pair()
    provider.always("get", status=429, retry_after=10**9)

    reconcile()

    assert pauses() == pytest.approx([3600], abs=3)


def test_a_stop_that_is_not_taken_for_now_is_held_against_nobody(
    fifty: list[Box], provider: FakeProvider
) -> None:
    Box.objects.update(created_at=database_now() - timedelta(seconds=3601))
    provider.always("stop", status=429, retry_after=120)

    result = reconcile()

    assert (provider.count("stop"), result.stopped, result.failed, result.deferred) == (1, 0, 0, 50)
    assert {(box.stop_requested_at, box.reconciliation_failures) for box in Box.objects.all()} == {(None, 0)}
    assert pauses() == pytest.approx([120] * 50, abs=3)


def test_a_bare_rate_limit_on_a_stop_costs_one_row(fifty: list[Box], provider: FakeProvider) -> None:
    Box.objects.update(created_at=database_now() - timedelta(seconds=3601))
    provider.always("stop", status=429)

    result = reconcile()

    assert (provider.count("stop"), result.failed, result.deferred) == (1, 1, 49)


def test_looks_that_were_asked_to_wait_send_no_stops(fifty: list[Box], provider: FakeProvider) -> None:
    provider.always("get", box="bx_00000001", status=429, retry_after=120)
    Box.objects.update(created_at=database_now() - timedelta(seconds=3601))

    reconcile()

    assert provider.count("stop") == 0
    assert {box.stop_requested_at for box in Box.objects.all()} == {None}


# one look that nobody foresaw, and no time


def test_an_error_that_nobody_foresaw_costs_only_its_row(
    pair: Pair, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, good = pair("bx_22222222"), pair("bx_22222223", age=3601, row={"label": "good"})
    provider.always("get", box="bx_22222222", json={"box": {"id": "bx_22222222", "state": "ready"}})
    seen = looks.Seen

    def seen_but(box: Any, **more: Any) -> Any:
        if box.id == "bx_22222222":
            raise RecursionError
        return seen(box, **more)

    monkeypatch.setattr(looks, "Seen", seen_but)

    result = reconcile()

    assert (result.failed, result.stopped) == (1, 1)
    assert (again(odd).stopped_at, again(odd).reconciliation_error) == (None, "internal_error")
    assert again(good).stopped_at is not None


def test_a_pass_that_runs_out_of_time_leaves_the_rest_due(
    fifty: list[Box], provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, box_api: Callable[..., None]
) -> None:
    monkeypatch.setattr(import_module("boxes.reconciler.survey"), "LOOKING_SECONDS", -1)

    result = reconcile()

    assert (result.observed, result.unanswered, result.incomplete) == (0, 50, True)
    assert {box.next_reconciliation_at for box in Box.objects.all()} == {None}
    assert provider.count("get") == 0


def test_a_pass_without_time_for_stops_leaves_them_due(
    fifty: list[Box], provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("boxes.reconciler.reconcile"), "PASS_SECONDS", -1)

    result = reconcile()

    assert (result.stopped, result.unanswered, result.incomplete) == (0, 1, True)
    assert {box.stop_requested_at for box in Box.objects.all()} == {None}


def test_looks_go_out_at_once_but_never_more_than_allowed(
    fifty: list[Box], provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(reconcile_concurrency=4)
    at_once: list[int] = []
    open_looks: list[None] = []

    def count(_request: Any) -> bool:
        open_looks.append(None)
        at_once.append(len(open_looks))
        return False

    def uncount(body: Any) -> Any:
        open_looks.pop()
        return body

    provider.always("get", when=lambda request: not count(request), edit=uncount, wait=0.01)
    reconcile()

    assert max(at_once) == 4
    assert provider.count("get") == 50
