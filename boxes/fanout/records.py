"""What plans and their items have in common: why an item waits, and the counters of a request."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection

from boxes.errors import ProviderCode
from boxes.models import FanoutRequest
from boxes.states import FanoutState, QueueReason

QUEUE_REASON: Mapping[str, QueueReason] = {
    "box_quota_reached": QueueReason.CONVERSATION_LIMIT,
    "box_owner_quota_reached": QueueReason.OWNER_LIMIT,
    "box_global_quota_reached": QueueReason.GLOBAL_LIMIT,
    ProviderCode.BILLING_REQUIRED: QueueReason.PROVIDER_BILLING,
    ProviderCode.RATE_LIMITED: QueueReason.PROVIDER_RATE,
}
"""What an item that waits says, by the code of the refusal, where that does not say itself."""


def queue_reason(code: str | None) -> str | None:
    """What an item says of why it waits."""
    if code is None:
        return None
    said = QUEUE_REASON.get(code, code)
    return said if said in QueueReason.values else QueueReason.REFUSED


def recount(request: FanoutRequest) -> None:
    """The counters and the state, from the items."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            update box_fanout_requests request set admitted_count = items.admitted, queued_count = items.queued,
                state = case when items.queued = 0 then %(admitted)s else %(queued)s end, updated_at = clock_timestamp()
            from (select count(*) filter (where state = %(admitted)s) as admitted,
                         count(*) filter (where state = %(queued)s) as queued
                  from box_fanout_items where request_id = %(id)s) items
            where request.id = %(id)s
            """,
            {"id": request.pk, "admitted": FanoutState.ADMITTED, "queued": FanoutState.QUEUED},
        )
