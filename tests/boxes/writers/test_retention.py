"""What is forgotten: old things that were handled, and nothing that is open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from base.clock import database_now
from boxes.models import ProcessHeartbeat, ReconciliationEvent
from boxes.retention import EVENTS_KEPT_DAYS, prune
from tests.boxes.writers.conftest import MakeBox

pytestmark = pytest.mark.django_db


def event(name: str, **days_ago: int) -> ReconciliationEvent:
    now = database_now()
    times: dict[str, Any] = {field: now - timedelta(days=days) for field, days in days_ago.items()}
    return ReconciliationEvent.objects.create(provider_box_id=name, event_type="leak", reason="x", **times)


def test_events_handled_long_ago_are_dropped() -> None:
    old = EVENTS_KEPT_DAYS + 1
    event("handled long ago", observed_at=old, handled_at=old, last_seen_at=old)
    event("handled long ago, never seen again", observed_at=old, handled_at=old)
    event("open", observed_at=old, last_seen_at=old)
    event("seen again", observed_at=old, handled_at=old, last_seen_at=1)
    event("just handled", observed_at=old, handled_at=1)

    prune()

    assert set(ReconciliationEvent.objects.values_list("provider_box_id", flat=True)) == {
        "open",
        "seen again",
        "just handled",
    }


def test_signs_of_processes_long_gone_are_dropped_and_rows_stay(make_box: MakeBox) -> None:
    box = make_box("bx_1", created_at=database_now() - timedelta(days=4000), stopped_at=database_now())
    for name, days in [("old", 8), ("new", 6)]:
        ProcessHeartbeat.objects.create(name=name, stamped_at=database_now() - timedelta(days=days))

    prune()

    assert list(ProcessHeartbeat.objects.values_list("name", flat=True)) == ["new"]
    assert type(box).objects.filter(pk=box.pk).exists()
