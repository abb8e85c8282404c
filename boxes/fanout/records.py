"""What plans and their items have in common: why an item waits, and the counters of a request."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection

from boxes.errors import ProviderCode
from boxes.models import FanoutRequest
from boxes.states import FanoutState

QUEUE_REASON: Mapping[str, str] = {
    "box_quota_reached": "conversation_active_limit",
    "box_owner_quota_reached": "owner_active_limit",
    "box_global_quota_reached": "global_active_limit",
    ProviderCode.BILLING_REQUIRED: "provider_billing_required",
    ProviderCode.RATE_LIMITED: "provider_rate_limited",
}
"""What an item that waits says, by the code of the refusal; any other code says itself."""


def queue_reason(code: str | None) -> str | None:
    """What an item says of why it waits."""
    return None if code is None else QUEUE_REASON.get(code, code)


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
