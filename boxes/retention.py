"""What the app forgets, and when. Ledger rows are never forgotten."""

from __future__ import annotations

from base.retention import RetentionSettings, Rule, before, forget, retention

EVENTS_KEPT_DAYS = RetentionSettings.event_days  # long enough for a year's accounts

RULES = (
    Rule(
        "signs of life",
        "process_heartbeats",
        "name",
        before("stamped_at"),
        lambda: retention().heartbeat_days,
    ),
    Rule(
        "notices of spent budgets",
        "box_budget_notices",
        "id",
        "r.day < (clock_timestamp() at time zone 'UTC')::date - %(days)s",
        lambda: retention().notice_days,
    ),
    Rule(
        "handled events",
        "box_reconciliation_events",
        "id",
        f"{before('handled_at')} and {before('observed_at')} and (r.last_seen_at is null or {before('last_seen_at')})",
        lambda: retention().event_days,
    ),
    Rule(
        "webhook deliveries",
        "box_webhook_deliveries",
        "delivery_id",
        before("received_at"),
        lambda: retention().delivery_days,
    ),
)


def prune() -> int:
    """Drop signs of life, notices, deliveries and handled events that are old; returns how many. What is open stays."""
    return forget(RULES)
