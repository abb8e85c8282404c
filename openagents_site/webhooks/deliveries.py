"""The rows of deliveries: taken under a lease, and written when it is known how a try went."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction

from base import leases, measures
from base.pump import Holder
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.models import Attempt
from openagents_site.webhooks.rules import Answer, Decision, Verdict, decide
from openagents_site.webhooks.states import DeliveryState, DisabledReason

log = structlog.get_logger(__name__)
PER_WEBHOOK = 4
"""Deliveries of one webhook in flight at once: a slow receiver holds up itself alone."""

LEASE_SECONDS = 90

_MAY_BE_TOLD = """exists (select 1 from users u where u.id = s.owner_id and u.is_active and u.deleted_at is null
        and (u.is_staff or not s.all_owners))"""
"""SQL: the webhook called `s` is still somebody's who may be told what it asks for. Asked at each try: a replay is one."""

_BUSY = f"""(select count(*) from webhook_deliveries busy
        where busy.subscription_id = s.id and not {leases.free("busy")})"""  # noqa: S608
"""SQL: how many deliveries of the webhook called `s` are in flight."""

_CLAIM = f"""
    with due as (
        select d.id from webhook_subscriptions s cross join lateral (
            select d.id, d.next_attempt_at from webhook_deliveries d
            where d.subscription_id = s.id and d.next_attempt_at <= clock_timestamp() and {leases.free("d")}
            order by d.next_attempt_at
            limit greatest(0, %(per_webhook)s - {_BUSY})
            for update of d skip locked) d
        where s.disabled_at is null and {_MAY_BE_TOLD} order by d.next_attempt_at limit %(limit)s),
    left_behind as (
        select d.id from webhook_subscriptions s join webhook_deliveries d on d.subscription_id = s.id
        where s.disabled_at is not null and d.next_attempt_at is not null
            and d.lease_expires_at is not null and {leases.free("d")} for update of d skip locked),
    not_for_them as (
        select d.id from webhook_subscriptions s join webhook_deliveries d on d.subscription_id = s.id
        where s.disabled_at is null and not {_MAY_BE_TOLD}
            and d.next_attempt_at is not null and {leases.free("d")} for update of d skip locked),
    cancelled as (
        update webhook_deliveries d set {leases.RELEASE}, {subscriptions.CANCEL}
        where d.id in (select id from left_behind union all select id from not_for_them))
    update webhook_deliveries d set {leases.take("d").replace("%s", "%(owner)s", 1).replace("%s", "%(lease)s", 1)}
    from due, webhook_subscriptions s, webhook_events e
    where d.id = due.id and s.id = d.subscription_id and e.id = d.event_id
    returning d.id, d.generation, d.failures, d.subscription_id, s.url, e.id, e.payload, s.sealed_secret,
        case when s.previous_until > clock_timestamp() then s.sealed_previous_secret end, clock_timestamp()
"""  # noqa: S608 - constants of ours
_SETTLE = f"""
    update webhook_deliveries d set {leases.RELEASE}, attempts = d.attempts + 1, failures = %(failures)s,
        last_status = %(status)s, last_error = %(error)s,
        state = case when %(state)s = 'pending' and s.disabled_at is not null then 'cancelled' else %(state)s end,
        next_attempt_at = case when %(state)s = 'pending' and s.disabled_at is null
            then clock_timestamp() + make_interval(secs => %(pause)s) end,
        ended_at = case when %(state)s <> 'pending' or s.disabled_at is not null then clock_timestamp() end
    from webhook_subscriptions s
    where d.id = %(id)s and d.generation = %(generation)s and d.state = 'pending' and d.lease_expires_at is not null
        and s.id = d.subscription_id
    returning d.attempts
"""  # noqa: S608
_NEXT_DUE = f"""
    select extract(epoch from min(d.next_attempt_at) - clock_timestamp())
    from webhook_subscriptions s cross join lateral (
        select d.next_attempt_at from webhook_deliveries d where d.subscription_id = s.id
            and d.next_attempt_at is not null and {leases.free("d")} order by d.next_attempt_at limit 1) d
    where s.disabled_at is null and {_BUSY} < %s
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Task:
    """One try, with everything it needs. Address, body and secrets are never printed."""

    id: UUID
    generation: int
    failures: int
    webhook: UUID
    url: str = field(repr=False)
    event: UUID = field(repr=False)
    body: str = field(repr=False)
    sealed_secret: bytes = field(repr=False)
    sealed_previous: bytes | None = field(repr=False)
    claimed_at: datetime = field(repr=False)


def claim_due(holder: Holder, limit: int) -> list[Task]:
    """At most `limit` deliveries that are due, leased to `holder`; of one webhook a few."""
    values = {
        "limit": limit,
        "per_webhook": PER_WEBHOOK,
        "owner": holder.owner,
        "lease": max(LEASE_SECONDS, holder.lease_seconds),
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        return [Task(*row) for row in cursor.fetchall()]


def seconds_until_due() -> float | None:
    """Until the next delivery that could be claimed is due; None without one.

    What waits for others of its webhook to come back is not due: whoever brings one back asks again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_DUE, [PER_WEBHOOK])
        row = cursor.fetchone()
    return max(0.0, float(row[0])) if row and row[0] is not None else None


def settle(task: Task, answer: Answer, *, chance: float) -> bool:
    """Write how a try went, and what follows for the delivery and its webhook. False: somebody else holds it now."""
    decision = decide(answer, task.failures, chance)
    with transaction.atomic():
        number = _written(task, answer, decision)
        if number is None:
            return False
        Attempt.objects.create(
            delivery_id=task.id,
            number=number,
            started_at=task.claimed_at,
            duration_ms=answer.duration_ms,
            status=answer.status,
            error=answer.error,
        )
        _follow(task, decision)
    measures.WEBHOOK_ATTEMPTS.labels(decision.verdict.value).inc()
    log.info("webhook_tried", delivery=str(task.id), webhook=str(task.webhook), status=answer.status,
             error=answer.error, verdict=decision.verdict.value)  # fmt: skip
    return True


def _written(task: Task, answer: Answer, decision: Decision) -> int | None:
    values: dict[str, Any] = {
        "id": task.id,
        "generation": task.generation,
        "failures": task.failures + (decision.verdict != Verdict.DELIVERED),
        "status": answer.status,
        "error": answer.error,
        "state": _STATES[decision.verdict].value,
        "pause": decision.pause_seconds or 0,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, values)
        row = cursor.fetchone()
    return int(row[0]) if row else None


_STATES = {
    Verdict.DELIVERED: DeliveryState.DELIVERED,
    Verdict.AGAIN: DeliveryState.PENDING,
    Verdict.EXHAUSTED: DeliveryState.EXHAUSTED,
    Verdict.GONE: DeliveryState.EXHAUSTED,
}


def _follow(task: Task, decision: Decision) -> None:
    if decision.verdict == Verdict.DELIVERED:
        subscriptions.note_success(task.webhook)
    elif decision.verdict == Verdict.GONE:
        subscriptions.disable(task.webhook, DisabledReason.GONE)
    else:
        subscriptions.note_failure(task.webhook)
