"""A row that is refused, or that cannot be decided about, costs only itself."""

from __future__ import annotations

from typing import Any

import pytest

from base import hooks
from boxes.models import Box
from boxes.reconciler import reconcile
from tests.boxes.reconciler.conftest import Pair, again, refused
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_a_row_that_the_database_refuses_costs_only_itself(pair: Pair, provider: FakeProvider) -> None:
    boxes = [pair(f"bx_2222222{digit}", row={"label": f"box-{digit}"}) for digit in "234"]
    old = pair("bx_22222225", age=3601, row={"label": "old"})
    with refused(boxes[1]):
        result = reconcile()

    assert [again(box).last_reconciled_at is not None for box in boxes] == [True, False, True]
    assert (result.observed, result.stopped) == (3, 1)
    assert again(old).stopped_at is not None


def test_an_end_that_the_database_refuses_costs_only_itself(pair: Pair, provider: FakeProvider) -> None:
    boxes = [pair(f"bx_2222222{digit}", row={"label": f"box-{digit}"}, state="archived") for digit in "234"]
    with refused(boxes[0]):
        assert reconcile().ended == 2

    assert [again(box).stopped_at is not None for box in boxes] == [False, True, True]


def test_a_claim_that_the_database_refuses_costs_only_itself(pair: Pair, provider: FakeProvider) -> None:
    boxes = [pair(f"bx_2222222{digit}", age=3601, row={"label": f"box-{digit}"}) for digit in "234"]
    with refused(boxes[0], when="new.stop_requested_at is not null"):
        assert reconcile().stopped == 2

    assert [again(box).stopped_at is not None for box in boxes] == [False, True, True]


def test_a_hook_that_raises_costs_nothing(
    pair: Pair, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(box_id: Any) -> None:
        raise RuntimeError("no")

    boxes = [pair(f"bx_2222222{digit}", age=3601, row={"label": f"box-{digit}"}) for digit in "23"]
    monkeypatch.setattr(hooks.box_stopped, "_callables", [broken])

    assert reconcile().stopped == 2
    assert all(again(box).stopped_at for box in boxes)


def test_a_row_that_cannot_be_decided_about_costs_only_itself(pair: Pair, provider: FakeProvider) -> None:
    good, bad = pair("bx_22222222", age=3601), pair("bx_22222223", row={"label": "bad"})
    Box.objects.filter(pk=bad.pk).update(created_at="9999-12-31T23:59:59Z")

    result = reconcile()

    assert (result.stopped, result.unanswered, result.incomplete) == (1, 1, True)
    assert again(good).stopped_at is not None
    assert again(bad).stopped_at is None


def test_times_far_in_the_future_stop_nothing(pair: Pair, provider: FakeProvider, evidence: str) -> None:
    future = {"createdAt": "2999-01-01T00:00:00Z", "archiveAfter": "9999-12-31T23:59:59Z"}
    box = pair(extra=future)

    assert reconcile().incomplete is False
    assert again(box).stopped_at is None
