"""What staff do about a leak: stop it, adopt it into a conversation, or dismiss it. Each is recorded with who and when."""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db import IntegrityError, transaction

from accounts.models import User
from base.clock import database_now
from base.sql import ClockTimestamp
from boxes import admission, labels
from boxes.client import client
from boxes.errors import BoxNotFound, LeakHandled, ProviderError
from boxes.models import Box, ReconciliationEvent
from boxes.states import BoxState, EventType, Resolution, SetupStatus
from boxes.stopping import call_stop

log = structlog.get_logger(__name__)


def find_leak(leak_id: UUID) -> ReconciliationEvent:
    """Raises BoxNotFound `leak_not_found`."""
    leak = ReconciliationEvent.objects.filter(pk=leak_id, event_type=EventType.LEAK).first()
    if leak is None:
        raise BoxNotFound("leak_not_found")
    return leak


def stop_leak(leak: ReconciliationEvent, *, by: User) -> ReconciliationEvent:
    """Stop the box at the provider, whoever's name it carries, and handle the leak.

    Raises LeakHandled, or the ProviderError of a stop that failed; the attempt is noted either way.
    """
    _require_open(leak)
    try:
        call_stop(client(), leak.provider_box_id)
    except ProviderError:
        ReconciliationEvent.objects.filter(pk=leak.pk).update(stop_attempted_at=ClockTimestamp())
        raise
    return _handle(leak, Resolution.STOPPED, by, stop_attempted_at=ClockTimestamp())


def dismiss_leak(leak: ReconciliationEvent, *, by: User) -> ReconciliationEvent:
    """Let the box be: it is not stopped and not reported anew. Raises LeakHandled."""
    return _handle(leak, Resolution.DISMISSED, by)


def adopt_leak(
    leak: ReconciliationEvent, conversation_id: UUID, *, by: User, label: str | None = None
) -> ReconciliationEvent:
    """Give the box a row in the conversation: from now on it counts, costs and ends as any other box there.

    It takes a place whether or not one is free, since the box exists already. Its life counts from now. Raises LeakHandled,
    ConversationNotFound, LabelTaken, InvalidRequest `invalid_box_label`.
    """
    wanted = None if label is None else labels.checked_label(label)
    with transaction.atomic():
        admission.enter(conversation_id)
        chosen = wanted or labels.next_labels(conversation_id, 1)[0]
        labels.require_free(conversation_id, [chosen])
        _handle(leak, Resolution.ADOPTED, by)
        leak.box = _insert(leak, conversation_id, chosen)
        leak.save(update_fields=["box"])
    return leak


def _insert(leak: ReconciliationEvent, conversation_id: UUID, label: str) -> Box:
    try:
        with transaction.atomic():
            return Box.objects.create(
                conversation_id=conversation_id,
                box_id=leak.provider_box_id,
                label=label,
                state=BoxState.PROVISIONING,  # the next pass sees what it really is
                setup_status=SetupStatus.DONE,
                created_at=database_now(),
            )
    except IntegrityError:
        raise LeakHandled(detail="The box has a row by now.") from None


def _require_open(leak: ReconciliationEvent) -> None:
    if leak.handled_at is not None:
        raise LeakHandled


def _handle(
    leak: ReconciliationEvent, resolution: Resolution, by: User, **values: object
) -> ReconciliationEvent:
    handled = ReconciliationEvent.objects.filter(pk=leak.pk, handled_at=None).update(
        handled_at=ClockTimestamp(), handled_by=by, resolution=resolution, **values
    )
    if not handled:
        raise LeakHandled
    log.info("leak_handled", box_id=leak.provider_box_id, resolution=str(resolution), by=str(by.pk))
    leak.refresh_from_db()
    return leak
