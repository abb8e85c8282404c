"""What a pass tells: history, log, plan and progress."""

from __future__ import annotations

import pytest
import structlog

from boxes import services
from boxes.models import ReconciliationEvent
from boxes.reconciler import plan, reconcile
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def test_the_history_says_who_and_why(pair: Pair, provider: FakeProvider) -> None:
    stopped, ended = (
        pair("bx_22222222", age=3601),
        pair("bx_22222223", row={"label": "b"}, state="archived"),
    )

    reconcile()

    for box, why in ((stopped, "its time was up"), (ended, "the provider says archived")):
        last = again(box).history.order_by("pgh_id").last()  # type: ignore[attr-defined]
        assert last.pgh_context["actor"] == "reconciler"
        assert last.pgh_context["why"].startswith(why)


def test_every_step_that_acts_is_a_line_of_the_log(pair: Pair, provider: FakeProvider) -> None:
    pair("bx_22222222", age=3601)
    pair("bx_22222223", row={"label": "b"}, state="archived")
    provider.add_box("bx_22222224", name=services.provider_ownership_marker(), age=3600)

    with structlog.testing.capture_logs() as lines:
        reconcile()

    said = {line["event"]: line for line in lines}
    assert said["box_stopped_by_pass"]["why"].startswith("its time was up")
    assert said["box_ended_by_provider"]["why"] == "the provider says archived"
    assert said["leak_stopped"]["box_id"] == "bx_22222224"
    assert said["reconciled"]["stopped"] == 1


def test_a_plan_says_what_would_be_done_and_does_nothing(pair: Pair, provider: FakeProvider) -> None:
    box = pair(age=3601)
    provider.add_box("bx_22222224", name=services.provider_ownership_marker(), age=3600)
    before = again(box)

    found = plan()

    assert [type(entry.action).__name__ for entry in found.decisions] == ["Stop"]
    assert [leak.step.value for leak in found.leaks] == ["stop"]
    assert vars(again(box))["generation"] == before.generation
    assert again(box).last_reconciled_at is None
    assert not ReconciliationEvent.objects.exists()
    assert {call.request.method for call in provider.calls()} == {"GET"}


def test_progress_is_told_as_boxes_are_looked_at(pair: Pair, provider: FakeProvider) -> None:
    for digit in "2345":
        pair(f"bx_2222222{digit}", row={"label": f"box-{digit}"})
    steps: list[tuple[int, int]] = []

    reconcile(lambda done, of: steps.append((done, of)))

    assert sorted(steps) == [(number, 4) for number in range(5)]
