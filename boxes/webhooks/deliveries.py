"""Taking a delivery, once: its row is due now, for a look and for whatever else waits for its time."""

from __future__ import annotations

import structlog
from django.db import IntegrityError, connection, transaction

from base import notify
from base.clock import database_now
from boxes.models import Box, WebhookDelivery
from boxes.webhooks.signature import Delivery

log = structlog.get_logger(__name__)
DRIVER = "looks"
LONGEST_BOX_ID = 200


def accept(delivery: Delivery) -> bool:
    """Note the delivery and make its row due now. False if it was taken before: then nothing is done."""
    with transaction.atomic():
        box = _row_of(delivery)
        if not _note(delivery, box):
            return False
        if box is not None:
            _make_due(box)
    log.info("delivery_taken", event_type=delivery.event_type, box=str(box.pk) if box else None)
    return True


def _row_of(delivery: Delivery) -> Box | None:
    box_id = delivery.box_id
    if box_id is None or len(box_id) > LONGEST_BOX_ID:
        return None
    return Box.objects.only("pk", "stopped_at", "usage_settled_at").filter(box_id=box_id).first()


def _note(delivery: Delivery, box: Box | None) -> bool:
    now = database_now()
    needs_look = box is not None and box.stopped_at is None
    row = WebhookDelivery(
        delivery_id=delivery.id,
        event_type=delivery.event_type,
        provider_box_id=(delivery.box_id or "")[:LONGEST_BOX_ID],
        box=box,
        received_at=now,
        looked_at=None if needs_look else now,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _make_due(box: Box) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [box.pk])
    for driver in ("settlement",) if box.stopped_at is not None else (DRIVER, "provisioning"):
        notify.notify(notify.DUE, driver)


_DUE = """
    update conversation_boxes set
        next_reconciliation_at = case when stopped_at is null then null else next_reconciliation_at end,
        next_provision_at = case when next_provision_at > clock_timestamp() and stop_requested_at is null
            then clock_timestamp() else next_provision_at end,
        next_settlement_at = case when usage_settled_at is null and stopped_at is not null
            then clock_timestamp() else next_settlement_at end
    where id = %s
"""
