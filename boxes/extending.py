"""Letting a box live longer: the provider's own end is moved first, then the ledger's."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import structlog

from base.clock import database_now
from boxes import selectors
from boxes.client import client
from boxes.conf import box_api
from boxes.errors import BoxNotFound, BoxNotReady, BoxStopped, InvalidRequest, LifetimeReached
from boxes.lifetime import latest_end
from boxes.models import Box

log = structlog.get_logger(__name__)

LONGEST_PROVIDER_SECONDS = 2_592_000  # what the provider takes at most


def extend_box(box: Box, seconds: int) -> Box:
    """Move the end of the box `seconds` further, at most to its maximum lifetime; returns the row.

    The provider is told before the ledger says so: if that fails nothing is extended, and the request may be repeated.
    Raises InvalidRequest for `seconds` below 1, LifetimeReached if it cannot live any longer, BoxStopped, BoxNotReady before
    the provider's id is known, BoxNotFound if the provider refused to make it meanwhile, ProviderError.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds < 1:
        raise InvalidRequest(detail="A box is extended by a whole number of seconds, at least 1.")
    while True:
        if not selectors.reread(box):
            raise BoxNotFound
        end = _end_after(box, seconds)
        now = database_now()
        _move_provider_end(box, end, now)
        if _write(box, end):
            box.refresh_from_db()
            log.info("box_extended", box=str(box.pk), until=end.isoformat())
            return box
        # Somebody else extended or stopped it meanwhile: what the row says now counts, and the provider is told again.


def _end_after(box: Box, seconds: int) -> datetime:
    if box.stopped_at is not None or box.stop_requested_at is not None:
        raise BoxStopped
    if box.box_id is None:
        raise BoxNotReady
    conf = box_api()
    latest = latest_end(
        box.created_at,
        ttl_seconds=conf.ttl_seconds,
        maximum_lifetime_seconds=conf.maximum_lifetime_seconds,
    )
    current = box.expires_at
    assert current is not None
    if current >= latest:
        raise LifetimeReached
    return min(latest, current + timedelta(seconds=min(seconds, conf.maximum_lifetime_seconds)))


def _move_provider_end(box: Box, end: datetime, now: datetime) -> None:
    assert box.box_id is not None
    left = math.ceil((end - now).total_seconds())
    client().patch(box.box_id, ttl_seconds=min(max(left, 1), LONGEST_PROVIDER_SECONDS))


def _write(box: Box, end: datetime) -> bool:
    unchanged = Box.objects.filter(pk=box.pk, stopped_at=None, stop_requested_at=None)
    return unchanged.filter(extended_until=box.extended_until).update(extended_until=end) == 1
