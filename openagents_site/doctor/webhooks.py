"""What is looked at of webhooks: events that nobody takes up, deliveries that nobody sends, receivers that take nothing."""

from __future__ import annotations

from django.db import connection

from base.amounts import counted
from openagents_site.doctor import Finding, bad, good, warning

OVERDUE_MINUTES = 5
_EVENTS = f"""select count(*) from webhook_events where fanned_out_at is null
    and occurred_at < clock_timestamp() - make_interval(mins => {OVERDUE_MINUTES})"""  # noqa: S608
_DELIVERIES = f"""
    select count(*) from webhook_deliveries d join webhook_subscriptions s on s.id = d.subscription_id
    where s.disabled_at is null and d.next_attempt_at < clock_timestamp() - make_interval(mins => {OVERDUE_MINUTES})
        and not exists (select 1 from webhook_deliveries busy
            where busy.subscription_id = d.subscription_id and busy.lease_expires_at > clock_timestamp())"""  # noqa: S608
_FAILING = "select count(*) from webhook_subscriptions where disabled_at is null and failing_since < clock_timestamp() - interval '1 day'"


def deliveries() -> list[Finding]:
    """Nothing that is to be told waits for minutes. A receiver that is slow holds up its own deliveries, which is no fault of ours."""
    found = []
    if events := _count(_EVENTS):
        seen = f"{counted(events, 'event')} wait{'s' if events == 1 else ''} for more than {OVERDUE_MINUTES} minutes to be told"
        found.append(bad("outbound webhooks", seen, "start manage.py run_worker, and see its log"))
    if overdue := _count(_DELIVERIES):
        waiting = f"{counted(overdue, 'delivery is', 'deliveries are')} due"
        seen = f"{waiting} for more than {OVERDUE_MINUTES} minutes, and nobody sends them"
        found.append(bad("outbound webhooks", seen, "start manage.py run_worker, and see its log"))
    if failing := _count(_FAILING):
        seen = f"{counted(failing, 'webhook has', 'webhooks have')} taken nothing for a day"
        found.append(warning("outbound webhooks", seen, "see manage.py webhooks list, and tell their owners"))
    return found or [good("outbound webhooks", "nothing waits for long")]


def _count(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    return int(row[0]) if row else 0
