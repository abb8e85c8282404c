"""What a pass needs to know: the complete listing, the rows to consider, and a look at each box that asks for one.

The looks run in threads, a bounded number at once, and never touch the database. The first one goes alone: if the provider wants
to be left alone it is asked once, not as often as there are threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from boxes import activity
from boxes.client import PASS_TRIES, BoxClient
from boxes.conf import BoxApi
from boxes.errors import ProviderCode, ProviderError, Refused, RetryLater
from boxes.installation import provider_ownership_marker
from boxes.models import Box
from boxes.reconciler.types import Deferred, Failed, Missing, Observation, Policy, Row, Seen

HELD_AGAINST_THE_ROW = frozenset({ProviderCode.UNREACHABLE.value, ProviderCode.RATE_LIMITED.value})
QUIET_SECONDS = 5.0  # how long rows are put off after a 429 that does not say how long
PASS_SECONDS = 240.0  # after this no further box is asked about; the rest is due in the next pass
OUT_OF_TIME = Failed("pass_out_of_time", counts=False)


def policy_of(conf: BoxApi) -> Policy:
    return Policy(
        marker=provider_ownership_marker(),
        ttl_seconds=conf.ttl_seconds,
        maximum_lifetime_seconds=conf.maximum_lifetime_seconds,
        idle_timeout=timedelta(seconds=conf.idle_timeout_seconds),
        evidence="list" if conf.reconcile_evidence == "list" else "get",
    )


def considered_boxes() -> list[Box]:
    """The rows of a pass, oldest first: active ones, and stopped ones whose usage is not settled. One query."""
    wanted = Q(stopped_at__isnull=True) | Q(usage_settled_at__isnull=True)
    return list(
        Box.objects.filter(wanted)
        .order_by("created_at", "id")
        .defer("create_body", "reconciliation_error", "create_error")
    )


def rows_of(boxes: Sequence[Box]) -> list[Row]:
    """The boxes as plain rows, each with its last activity; as many queries as there are reporters of activity."""
    idle = activity.idle_since(boxes)
    return [_row(box, idle) for box in boxes]


def _row(box: Box, idle: dict[UUID, datetime | None]) -> Row:
    return Row(
        pk=box.pk,
        box_id=box.box_id,
        label=box.label,
        generation=box.generation,
        created_at=box.created_at,
        extended_until=box.extended_until,
        stopped_at=box.stopped_at,
        stop_requested_at=box.stop_requested_at,
        usage_settled_at=box.usage_settled_at,
        next_settlement_at=box.next_settlement_at,
        next_reconciliation_at=box.next_reconciliation_at,
        reconciliation_failures=box.reconciliation_failures,
        idle_since=idle[box.pk],
        is_ours_to_mark=box.create_key is not None and box.marked_at is None,
    )


class Looks:
    """The looks of one pass at single boxes."""

    def __init__(self, provider: BoxClient, conf: BoxApi) -> None:
        self._provider, self._concurrency = provider, conf.reconcile_concurrency
        self._seconds = conf.reconciliation_receive_timeout_ms / 1000
        self._ends_at = time.monotonic() + PASS_SECONDS
        self._quiet = threading.Event()

    def at(self, box_ids: Sequence[str], tick: Callable[[], object] = lambda: None) -> dict[str, Observation]:
        """What was seen of each of these boxes; `tick` is called after each look, from any thread."""

        def look(box_id: str) -> Observation:
            seen = self._look(box_id)
            tick()
            return seen

        if not box_ids:
            return {}
        first = look(box_ids[0])
        if len(box_ids) == 1:
            return {box_ids[0]: first}
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="looks") as pool:
            return {box_ids[0]: first, **dict(zip(box_ids[1:], pool.map(look, box_ids[1:]), strict=True))}

    def _look(self, box_id: str) -> Observation:
        if self._quiet.is_set():
            return Deferred(QUIET_SECONDS)
        if time.monotonic() > self._ends_at:
            return OUT_OF_TIME
        try:
            return Seen(self._provider.get(box_id, tries=PASS_TRIES, timeout_seconds=self._seconds))
        except ProviderError as error:
            return self._unusable(error)

    def _unusable(self, error: ProviderError) -> Observation:
        if isinstance(error, Refused) and error.code == ProviderCode.NOT_FOUND:
            return Missing()
        if isinstance(error, RetryLater) and error.retry_after_seconds is not None:
            return Deferred(error.retry_after_seconds)
        if error.code == ProviderCode.RATE_LIMITED:
            if self._quiet.is_set():
                return Deferred(QUIET_SECONDS)
            self._quiet.set()  # one row is enough to learn it
        return Failed(str(error.code), counts=error.code in HELD_AGAINST_THE_ROW)
