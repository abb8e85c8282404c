"""From what happened to what has to be told to whom. An event and its deliveries are one transaction, so none is lost or doubled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction

from base import notify
from base.clock import database_now
from base.pump import Holder, Outcome
from conversations.models import Conversation
from openagents_site.webhooks.models import Delivery, Event, Subscription
from openagents_site.webhooks.rendering import payloads_of
from openagents_site.webhooks.sources import EVENTS_DRIVER
from openagents_site.webhooks.states import TEST
from openagents_site.webhooks.subscriptions import DELIVERIES_DRIVER

log = structlog.get_logger(__name__)
BATCH = 100
REST_SECONDS = 5.0
"""After a batch that failed: whatever broke it is likely to be there still."""


def fan_out(limit: int = BATCH) -> int:
    """Make the deliveries of the oldest events that have none yet; returns how many events were looked at.

    Events that another process is at are left to it. An event that nobody wants is dropped.
    """
    with transaction.atomic():
        events = list(
            Event.objects.select_for_update(skip_locked=True)
            .filter(fanned_out_at=None)
            .order_by("occurred_at")[:limit]
        )
        if events:
            _tell(events)
    return len(events)


def wanted_by(event: Event, owner: UUID | None, subscriptions: Sequence[Subscription]) -> list[Subscription]:
    """The webhooks that are told of this event."""
    return [found for found in subscriptions if _wants(found, event, owner)]


def _tell(events: list[Event]) -> None:
    subscriptions, owners, now = _listening(), _owners_of(events), database_now()
    wanted = {event.pk: wanted_by(event, owners.get(event.pk), subscriptions) for event in events}
    kept = [event for event in events if wanted[event.pk]]
    Event.objects.filter(pk__in=[event.pk for event in events if not wanted[event.pk]]).delete()
    for event, payload in zip(kept, payloads_of(kept), strict=True):
        event.payload, event.fanned_out_at = payload, now
    Event.objects.bulk_update(kept, ["payload", "fanned_out_at"])
    Delivery.objects.bulk_create(
        [Delivery(event=event, subscription=one) for event in kept for one in wanted[event.pk]],
        ignore_conflicts=True,
    )
    if kept:
        notify.notify(notify.DUE, DELIVERIES_DRIVER)


def _listening() -> list[Subscription]:
    """Every webhook that is on and whose owner may still be told."""
    return list(
        Subscription.objects.filter(
            disabled_at=None, owner__is_active=True, owner__deleted_at=None
        ).select_related("owner")
    )


def _wants(subscription: Subscription, event: Event, owner: UUID | None) -> bool:
    if event.only_for_id is not None:
        return subscription.pk == event.only_for_id
    if subscription.created_at > event.occurred_at:
        return False
    listed = subscription.event_types
    noun = event.event_type.partition(".")[0]
    if listed and event.event_type not in listed and f"{noun}.*" not in listed:
        return False
    if subscription.all_owners:
        return bool(subscription.owner.is_staff)
    return owner is not None and subscription.owner_id == owner


def _owners_of(events: Sequence[Event]) -> dict[UUID, UUID | None]:
    """Whose each event is; None for what belongs to nobody. One query."""
    conversations = {
        event.pk: event.row.get("conversation_id") for event in events if event.event_type != TEST
    }
    users = dict(
        Conversation.objects.filter(pk__in={pk for pk in conversations.values() if pk}).values_list(
            "pk", "visitor__user"
        )
    )
    return {event.pk: _owner_of(event, users) for event in events}


def _owner_of(event: Event, users: dict[UUID, Any]) -> UUID | None:
    named = event.row.get("owner_user_id")
    if named:
        return UUID(named)
    conversation = event.row.get("conversation_id")
    return (
        users.get(UUID(conversation))
        if conversation and not event.event_type.startswith("incident.")
        else None
    )


class EventDriver:
    """See `base.pump.Driver`. One batch at a time; `perform` has a connection of its own, since rendering asks the ledgers."""

    name = EVENTS_DRIVER
    slots = 1

    def __init__(self) -> None:
        self._rests_until = 0.0  # on the monotonic clock

    def claim(self, holder: Holder, limit: int) -> Sequence[str]:
        """One batch, if any event waits; the rows themselves are locked by who works on them."""
        return [EVENTS_DRIVER] if limit > 0 and not self._rest() and self._any_waits() else []

    def perform(self, task: str) -> int:
        try:
            return fan_out()
        finally:
            connection.close()

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """A batch that failed waits as it was, and is not tried again at once."""
        for outcome in outcomes:
            if outcome.error is not None:
                self._rests_until = time.monotonic() + REST_SECONDS
                log.error("webhook_events_not_fanned_out", exc_info=outcome.error)

    def seconds_until_due(self) -> float | None:
        return self._rest() if self._any_waits() else None

    def _rest(self) -> float:
        return max(0.0, self._rests_until - time.monotonic())

    def _any_waits(self) -> bool:
        return Event.objects.filter(fanned_out_at=None).exists()
