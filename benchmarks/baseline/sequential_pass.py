"""The plain way to reconcile: one box after the other, a few statements each, and the first page of the list.

It does what a pass has to do for boxes that are well, expired, idle, ended or gone, with the product's own client and
tables, and none of its care for anything that goes wrong on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from boxes.client import PASS_TRIES, BoxClient, ProviderBox, client
from boxes.conf import box_api
from boxes.errors import ProviderCode, ProviderError
from boxes.models import Box, ReconciliationEvent
from boxes.services import provider_ownership_marker
from boxes.states import StopReason
from boxes.stopping import call_stop, claim_stop, complete_stop
from runs.models import Run


@dataclass
class Counted:
    """What a pass counted."""

    boxes: int
    provider_boxes: int


def reconcile() -> Counted:
    """One pass."""
    provider = client()
    listed = provider.list_page(states=None, limit=100).boxes
    rows = list(
        (Box.objects.filter(stopped_at=None) | Box.objects.filter(usage_settled_at=None)).order_by(
            "created_at"
        )
    )
    for row in rows:
        if row.stopped_at is None:
            _reconcile(provider, row)
    for box in listed:
        _report_leak(provider, box)
    return Counted(len(rows), len(listed))


def _reconcile(provider: BoxClient, row: Box) -> None:
    try:
        seen = provider.get(str(row.box_id), tries=PASS_TRIES)
    except ProviderError as error:
        if error.code == ProviderCode.NOT_FOUND:
            _end(row, "archived", "provider_missing")
        return
    Box.objects.filter(pk=row.pk).update(state=seen.state, setup_status=seen.setup_status)
    Box.objects.filter(pk=row.pk).update(
        last_reconciled_at=timezone.now(),
        reconciliation_failures=0,
        reconciliation_error=None,
        next_reconciliation_at=None,
    )
    if seen.is_terminal:
        _end(row, "archived", "provider_terminal")
    elif (reason := _stop_due(row)) is not None and seen.is_named(provider_ownership_marker()):
        _stop(provider, row, reason)


def _stop_due(row: Box) -> StopReason | None:
    conf, now = box_api(), timezone.now()
    if now - row.created_at >= timedelta(seconds=conf.ttl_seconds):
        return StopReason.TTL_EXPIRED
    newest = Run.objects.filter(conversation_box=row).order_by("-admitted_at").first()
    if newest is not None and not newest.is_terminal:
        return None
    used: datetime = row.created_at if newest is None else newest.finished_at or newest.admitted_at
    return StopReason.IDLE_TIMEOUT if now - used >= timedelta(seconds=conf.idle_timeout_seconds) else None


def _stop(provider: BoxClient, row: Box, reason: StopReason) -> None:
    if claim_stop(row, reason) == "claimed":
        complete_stop(row, reason, call_stop(provider, str(row.box_id)), by_pass=True)


def _end(row: Box, state: str, reason: str) -> None:
    ended: dict[str, Any] = {"state": state, "stopped_at": timezone.now(), "stop_reason": reason}
    Box.objects.filter(pk=row.pk, stopped_at=None).update(**ended)


def _report_leak(provider: BoxClient, box: ProviderBox) -> None:
    if Box.objects.filter(box_id=box.id).exists():
        return
    ReconciliationEvent.objects.get_or_create(
        provider_box_id=box.id,
        event_type="leak",
        defaults={"reason": "no row", "observed_at": timezone.now()},
    )
    if box.is_named(provider_ownership_marker()):
        call_stop(provider, box.id)
