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
from boxes.client.dialect import checked_id
from boxes.conf import box_api
from boxes.errors import BoxNotFound, LeakBusy, LeakHandled, ProviderCode, ProviderError, Refused
from boxes.installation import provider_ownership_marker
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import leak_ledger
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

    Raises LeakHandled, LeakBusy while somebody else is at it, or the ProviderError of a stop that failed; the attempt is
    noted either way.
    """
    box_id = leak_ledger.provider_id(leak)
    if not leak_ledger.claim_stops([box_id]):
        raise _why_not(leak)
    try:
        call_stop(client(), box_id)
    except ProviderError:
        leak_ledger.settle_stops([(box_id, False)])
        raise
    return _handle(leak, Resolution.STOPPED, by)


def dismiss_leak(leak: ReconciliationEvent, *, by: User) -> ReconciliationEvent:
    """Let the box be: it is not stopped and not reported anew. Raises LeakHandled, LeakBusy."""
    with transaction.atomic():
        _lock_open(leak)
        return _handle(leak, Resolution.DISMISSED, by)


def adopt_leak(
    leak: ReconciliationEvent, conversation_id: UUID, *, by: User, label: str | None = None
) -> ReconciliationEvent:
    """Give the box a row in the conversation: from now on it counts, costs and ends as any other box there.

    It takes a place whether or not one is free, since the box exists already, and counts with the estimate in force. Its life counts from now. It gets our name
    and our time at the provider; where that fails it is reported as a box under another name. Raises LeakHandled, LeakBusy
    while a stop of it is under way, ConversationNotFound, LabelTaken, InvalidRequest `invalid_box_label`, Refused
    `box_malformed_id` for a box that could never be asked about or stopped.
    """
    wanted = None if label is None else labels.checked_label(label)
    _require_askable(leak)
    with transaction.atomic():
        admission.enter(conversation_id)
        _lock_open(leak)
        chosen = wanted or labels.next_labels(conversation_id, 1)[0]
        labels.require_free(conversation_id, [chosen])
        leak.box = _insert(leak, conversation_id, chosen)
        leak.save(update_fields=["box"])
        _handle(leak, Resolution.ADOPTED, by)
    _make_ours(leak)
    return leak


def _require_askable(leak: ReconciliationEvent) -> None:
    box_id = leak_ledger.provider_id(leak)
    checked_id(box_id)
    if len(box_id) > leak_ledger.LONGEST_KEY:
        raise Refused(ProviderCode.MALFORMED_ID, log_detail="an id that is too long")


def _insert(leak: ReconciliationEvent, conversation_id: UUID, label: str) -> Box:
    try:
        with transaction.atomic():
            return Box.objects.create(
                conversation_id=conversation_id,
                box_id=leak_ledger.provider_id(leak),
                label=label,
                state=BoxState.PROVISIONING,  # the next look sees what it really is
                setup_status=SetupStatus.DONE,
                created_at=database_now(),
                estimated_burn_rate_microusd=box_api().estimated_burn_rate_per_box_hour_microusd,
            )
    except IntegrityError:
        raise LeakHandled(detail="The box has a row by now.") from None


def _make_ours(leak: ReconciliationEvent) -> None:
    """A box is only ever stopped for its time or idleness if it carries our name."""
    box_id = leak_ledger.provider_id(leak)
    try:
        client().patch(box_id, name=provider_ownership_marker(), ttl_seconds=box_api().ttl_seconds)
    except ProviderError as error:
        log.warning("adopted_box_not_named", box_id=leak.provider_box_id, code=error.code)


def _lock_open(leak: ReconciliationEvent) -> None:
    """Keep others from handling or stopping the leak until the transaction ends. Raises LeakHandled, LeakBusy."""
    leak.refresh_from_db(from_queryset=ReconciliationEvent.objects.select_for_update(of=("self",)))
    if leak.handled_at is not None or (leak.stopping_until and leak.stopping_until > database_now()):
        raise _why_not(leak)


def _why_not(leak: ReconciliationEvent) -> LeakHandled | LeakBusy:
    leak.refresh_from_db()
    if leak.handled_at is not None:
        return LeakHandled()
    if leak.stopping_until is not None and leak.stopping_until > database_now():
        return LeakBusy()
    return LeakHandled(detail="The box has a row by now.")


def _handle(leak: ReconciliationEvent, resolution: Resolution, by: User) -> ReconciliationEvent:
    handled = ReconciliationEvent.objects.filter(pk=leak.pk, handled_at=None).update(
        handled_at=ClockTimestamp(), handled_by=by, resolution=resolution, stopping_until=None
    )
    if not handled:
        raise LeakHandled
    log.info("leak_handled", box_id=leak.provider_box_id, resolution=str(resolution), by=str(by.pk))
    leak.refresh_from_db()
    return leak
