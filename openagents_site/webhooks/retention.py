"""What webhooks forget, and when: what was told, or given up, days ago."""

from __future__ import annotations

from base.retention import Rule, before, retention

_OLD_DELIVERY = """exists (select 1 from webhook_deliveries d where d.id = r.delivery_id
    and d.ended_at < clock_timestamp() - make_interval(days => %(days)s))"""

RULES = (
    Rule(
        "tries of webhook deliveries",
        "webhook_attempts",
        "id",
        _OLD_DELIVERY,
        lambda: retention().webhook_days,
    ),
    Rule(
        "webhook deliveries that ended",
        "webhook_deliveries",
        "id",
        f"{before('ended_at')} and not exists (select 1 from webhook_attempts a where a.delivery_id = r.id)",  # noqa: S608
        lambda: retention().webhook_days,
    ),
    Rule(
        "webhook events that were told",
        "webhook_events",
        "id",
        f"{before('fanned_out_at')} and not exists (select 1 from webhook_deliveries d where d.event_id = r.id)",  # noqa: S608
        lambda: retention().webhook_days,
    ),
)
