"""What the measurements stand on: the plain way does what a pass does, and the slow provider is a provider."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baseline import sequential_pass
from benchmarks.slow_provider import box_id
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from tests.boxes.reconciler.conftest import Pair
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("work", [reconcile, sequential_pass.reconcile])
def test_both_ways_end_in_the_same_ledger(
    pair: Pair, make_row: Pair, provider: FakeProvider, work: Callable[[], Any]
) -> None:
    pair("bx_22222222", row={"label": "healthy"})
    pair("bx_22222223", age=3601, row={"label": "expired"})
    pair("bx_22222224", age=1801, row={"label": "idle"})
    pair("bx_22222225", state="archived", row={"label": "ended"})
    make_row("bx_22222226", label="gone")
    provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)

    counted = work()

    assert counted.boxes == 5
    assert dict(Box.objects.values_list("label", "stop_reason")) == {
        "healthy": None,
        "expired": "ttl_expired",
        "idle": "idle_timeout",
        "ended": "provider_terminal",
        "gone": "provider_missing",
    }
    assert ReconciliationEvent.objects.filter(provider_box_id="bx_99999999").count() == 1
    assert [box.id for box in provider.billing()] == ["bx_22222222"]


def test_the_slow_provider_serves_a_pass(make_row: Pair, box_api: Callable[..., None]) -> None:
    for number in range(3):
        make_row(box_id(number), label=f"box-{number}", age=3601 if number == 0 else 0)
    command = [sys.executable, "-m", "benchmarks.slow_provider", "250", "ours", "0.001"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        box_api(base_url=process.stdout.readline().strip(), ownership_marker="ours")
        result = reconcile()
        process.kill()

    assert (result.provider_boxes, result.observed, result.stopped, result.leaks_stopped) == (250, 3, 1, 247)
