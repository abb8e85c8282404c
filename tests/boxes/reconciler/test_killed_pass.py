"""A pass that is killed at any of its points: the next one finishes what was begun, and nothing ends twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import F

from base.clock import database_now
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import carry_out, reconcile, strangers
from boxes.services import provider_ownership_marker
from boxes.usage import settlement
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]
CHECKOUT = Path(__file__).resolve().parents[3]
POINTS = (
    "boxes.reconcile.listed",
    "boxes.reconcile.decided",
    carry_out.CLAIMED,
    carry_out.STOPPED,
    "boxes.reconcile.written",
    strangers.LEAKS_CLAIMED,
    strangers.LEAKS_STOPPED,
    settlement.ANSWERED,
)


def killed_pass(provider: FakeProvider, point: str) -> None:
    """A pass in a process of its own that dies there as by kill -9."""
    database = connection.settings_dict
    url = (
        f"postgres://{database['USER']}:{database['PASSWORD']}@/{database['NAME']}"
        f"?host={database['HOST']}&port={database['PORT']}"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
        "DATABASE_URL": url,
        "BOX_API_BASE_URL": provider.url,
        "BOX_API_KEY": provider.key,
        "FAULT_POINTS": f"{point}=kill",
    }
    command = [sys.executable, "manage.py", "reconcile_boxes"]
    ended = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, timeout=100, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]


@pytest.fixture
def fleet(pair: Pair, make_row: Pair, provider: FakeProvider) -> dict[str, Box]:
    """A box of each kind that a pass acts on, besides a leak and a cost that is to be settled."""
    provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)
    provider.add_box("bx_2222222z", age=1000).state = "archived"
    now = database_now()
    return {
        "healthy": pair("bx_22222222", row={"label": "healthy"}),
        "expired": pair("bx_22222223", age=3601, row={"label": "expired"}),
        "idle": pair("bx_22222224", age=1801, row={"label": "idle"}),
        "gone": make_row("bx_22222225", label="gone"),
        "ended": pair("bx_22222226", state="archived", row={"label": "ended"}),
        "unsettled": make_row(
            "bx_2222222z", label="unsettled", stopped_at=now, next_settlement_at=now, state="archived"
        ),
    }


def claims_age() -> None:
    """What a dead process held is free for others."""
    gone = timedelta(minutes=3)
    Box.objects.exclude(stop_requested_at=None).update(stop_requested_at=F("stop_requested_at") - gone)
    Box.objects.exclude(lease_expires_at=None).update(lease_expires_at=F("lease_expires_at") - gone)
    ReconciliationEvent.objects.exclude(stopping_until=None).update(stopping_until=F("stopping_until") - gone)
    Box.objects.filter(usage_settled_at=None).exclude(next_settlement_at=None).update(
        next_settlement_at=F("next_settlement_at") - gone
    )


@pytest.mark.parametrize("point", POINTS)
def test_the_next_pass_finishes_what_was_begun(
    fleet: dict[str, Box], provider: FakeProvider, point: str
) -> None:
    killed_pass(provider, point)
    claims_age()
    reconcile()

    assert {name: again(box).stop_reason for name, box in fleet.items() if name != "unsettled"} == {
        "healthy": None,
        "expired": "ttl_expired",
        "idle": "idle_timeout",
        "gone": "provider_missing",
        "ended": "provider_terminal",
    }
    assert [box.id for box in provider.billing()] == ["bx_22222222"]
    assert all(provider.boxes[box_id].stops <= 2 for box_id in ("bx_22222223", "bx_22222224", "bx_99999999"))
    assert ReconciliationEvent.objects.get().resolution in ("stopped", "gone")
    assert again(fleet["unsettled"]).settled_cost_microusd == 10_000
    assert_ended_once()


def assert_ended_once() -> None:
    for box in Box.objects.exclude(stopped_at=None):
        ends = box.history.exclude(stopped_at=None)  # type: ignore[attr-defined]
        assert len(set(ends.values_list("stopped_at", "stop_reason", "lifetime_seconds"))) == 1
        assert (
            box.history.filter(usage_settled_at__isnull=False).values("usage_settled_at").distinct().count()
            <= 1
        )  # type: ignore[attr-defined]


def test_a_killed_pass_holds_up_no_other(fleet: dict[str, Box], provider: FakeProvider) -> None:
    killed_pass(provider, "boxes.reconcile.decided")

    result = reconcile()

    assert (result.skipped, result.stopped) == (False, 2)
