"""What the app forgets, and when. Ledger rows are never forgotten."""

from __future__ import annotations

from datetime import timedelta

from base.clock import database_now
from boxes import budgets, heartbeats, webhooks
from boxes.models import ReconciliationEvent

HEARTBEATS_KEPT_DAYS = 7
EVENTS_KEPT_DAYS = 400  # long enough for a year's accounts


def prune() -> int:
    """Drop signs of life, notices, deliveries and handled events that are old; returns how many. What is open stays."""
    forgotten = heartbeats.forget(HEARTBEATS_KEPT_DAYS) + budgets.forget_notices()
    return forgotten + forget_events() + webhooks.forget_deliveries()


def forget_events() -> int:
    """Drop events that were handled long ago and have not been seen since; returns how many."""
    before = database_now() - timedelta(days=EVENTS_KEPT_DAYS)
    old = ReconciliationEvent.objects.filter(handled_at__lt=before, observed_at__lt=before)
    return old.exclude(last_seen_at__gte=before).delete()[0]
