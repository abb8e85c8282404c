"""The queue: giving free places to what waits, and taking back what the provider refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from base import notify
from base.backoff import Backoff
from base.sql import ClockTimestamp
from boxes import admission, budgets
from boxes.admission import Limits, Tenant
from boxes.budgets import Spending
from boxes.conf import box_api
from boxes.errors import ProviderCode, Refused
from boxes.fanout.records import queue_reason, recount
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.states import ItemState, QueueReason
from conversations.services import ConversationNotFound

log = structlog.get_logger(__name__)

AFTER_REFUSAL = Backoff(first=timedelta(seconds=30), cap=timedelta(seconds=600))
"""Pause of an item that the provider refused: asking costs one of the starts that the provider counts."""

CONCERNS_CONVERSATION = frozenset({"box_quota_reached", "conversation_burn_rate_ceiling"})
CONCERNS_OWNER = frozenset({"box_owner_quota_reached", "owner_burn_rate_ceiling", "owner_budget_reached"})
CONCERNS_EVERYBODY = frozenset({"box_global_quota_reached", "budget_reached"})
ENDS_THE_REQUEST = frozenset({ProviderCode.BILLING_REQUIRED, ProviderCode.RATE_LIMITED})
"""Refusals of the provider after which the rest of the same request is not asked for either."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A queued item, as far as deciding who is next needs it."""

    item_id: UUID
    tenant: Tenant
    budgeted: bool


@dataclass
class _Blocked:
    """What one promotion has found to be full, so that it does not ask again for each item.

    A conversation is full for requests with and for those without a budget at different numbers of boxes.
    """

    conversations: set[tuple[UUID, bool]] = field(default_factory=set)
    owners: set[UUID] = field(default_factory=set)
    everybody: bool = False

    def covers(self, waiting: _Waiting) -> bool:
        tenant = waiting.tenant
        of_conversation = (tenant.conversation_id, waiting.budgeted) in self.conversations
        return self.everybody or of_conversation or tenant.user_id in self.owners

    def note(self, waiting: _Waiting, code: str) -> None:
        tenant = waiting.tenant
        if code in CONCERNS_EVERYBODY:
            self.everybody = True
        if code in CONCERNS_CONVERSATION:
            self.conversations.add((tenant.conversation_id, waiting.budgeted))
        if code in CONCERNS_OWNER and tenant.user_id is not None:
            self.owners.add(tenant.user_id)


def promote_queued() -> int:
    """Admit queued items of all conversations while there are places; returns how many were admitted.

    Owners take turns, each with its oldest item: the one whose last admission is longest ago is next. One that is full holds
    up nobody else. An item keeps its place in the queue however often it is tried. One transaction an item, and one bad
    item costs only itself.
    """
    blocked, promoted = _Blocked(), 0
    for waiting in _queue():
        if blocked.everybody:
            break
        if blocked.covers(waiting):
            continue
        try:
            code = _promote(waiting.item_id, waiting.tenant)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("promotion_failed", item=str(waiting.item_id))
            continue
        promoted += code is None
        if code is not None:
            blocked.note(waiting, code)
    return promoted


def put_back(box_pk: UUID, refused: Refused) -> bool:
    """Put the item of a reservation that the provider refused back into the queue, and give its place free.

    In a plan that was cancelled nothing waits any more: there the item is refused. After a refusal about billing or rate, the items of the same request for which nobody has asked yet go back as well. False
    if the row is not a plan's, or is not a bare reservation any more.
    """
    with transaction.atomic():
        refused_item = FanoutItem.objects.filter(box_id=box_pk).first()
        if refused_item is None:
            return False
        box_pks = _lock_reservations(box_pk, refused_item.request_id, others=refused.code in ENDS_THE_REQUEST)
        if box_pk not in box_pks:
            return False
        request = FanoutRequest.objects.select_for_update().get(pk=refused_item.request_id)
        _requeue(request, box_pks, refused, refusals=refused_item.refusals + 1)
        FanoutItem.objects.filter(pk=refused_item.pk).update(refusals=refused_item.refusals + 1)
        recount(request)
    log.info("fanout_item_put_back", request=str(request.pk), code=refused.code, items=len(box_pks))
    return True


def _queue() -> list[_Waiting]:
    """Everything that waits and may be tried now: each owner's oldest, then each owner's second, and so on.

    Places become free one at a time, so among the owners it is the turn of whoever waits longest since an item of theirs was
    admitted.
    """
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE)
        return [_Waiting(row[0], Tenant(row[1], row[2]), row[3]) for row in cursor.fetchall()]


_QUEUE = """
    with waiting as materialized (
        select item.id, item.queue_sequence, item.conversation_id, visitor.id as owner, visitor.user_id, request.budgeted,
               row_number() over (partition by visitor.id order by item.queue_sequence) as turn
        from box_fanout_items item
        join box_fanout_requests request on request.id = item.request_id
        join conversations conversation on conversation.id = item.conversation_id
        join visitors visitor on visitor.id = conversation.visitor_id
        where item.state = 'queued' and conversation.deleted_at is null
          and (item.next_attempt_at is null or item.next_attempt_at <= clock_timestamp())),
    served as (
        select conversation.visitor_id as owner, max(item.admitted_at) as at
        from conversations conversation join box_fanout_items item on item.conversation_id = conversation.id
        where conversation.visitor_id in (select owner from waiting) group by conversation.visitor_id)
    select waiting.id, waiting.conversation_id, waiting.user_id, waiting.budgeted
    from waiting left join served using (owner)
    order by waiting.turn, served.at nulls first, waiting.queue_sequence
"""


def _promote(item_id: UUID, tenant: Tenant) -> str | None:
    """Admit one item; the code of the refusal, or None if it was admitted (or is queued no more)."""
    spent: Spending | None = None
    try:
        with transaction.atomic():
            entered = admission.enter(tenant.conversation_id)
            item = FanoutItem.objects.select_related("request").filter(pk=item_id).first()
            request = FanoutRequest.objects.select_for_update().get(pk=item.request_id) if item else None
            item = FanoutItem.objects.select_for_update().filter(pk=item_id, state=ItemState.QUEUED).first()
            if item is None or request is None:
                return "not_queued"
            code, spent = _judge(entered, request.budgeted)
            if code is None:
                _admit_item(entered, request, item)
            elif item.queue_reason != queue_reason(code):
                FanoutItem.objects.filter(pk=item.pk).update(queue_reason=queue_reason(code))
            recount(request)
    except ConversationNotFound:
        return "conversation_not_found"
    if spent is not None:
        budgets.report(spent)
    return code


def _judge(tenant: Tenant, budgeted: bool) -> tuple[str | None, Spending | None]:
    limits = Limits.of(box_api(), budgeted=budgeted)
    code = admission.verdict(admission.load_of(tenant), limits, has_owner=tenant.user_id is not None)
    spent = budgets.reached(tenant.user_id) if code is None else None
    return (spent.code if spent else code), spent


def _admit_item(tenant: Tenant, request: FanoutRequest, item: FanoutItem) -> None:
    limits = Limits.of(box_api(), budgeted=request.budgeted)
    box = admission.write_reservation(tenant, label=item.label, limits=limits, budgeted=request.budgeted)
    FanoutItem.objects.filter(pk=item.pk).update(
        state=ItemState.ADMITTED,
        queue_reason=None,
        box=box,
        admitted_at=ClockTimestamp(),
        next_attempt_at=None,
        estimated_burn_rate_microusd=limits.estimate_microusd,
    )
    notify.notify(notify.DUE, "provisioning")


def _lock_reservations(box_pk: UUID, request_pk: UUID, *, others: bool) -> list[UUID]:
    """Of the refused item, and of the others of its request if asked: the reservations for which nothing can exist."""
    bare = Box.objects.filter(box_id=None, stopped_at=None, stop_requested_at=None, create_unknown=False)
    mine = bare.filter(pk=box_pk, create_attempts__lte=1)
    rest = bare.filter(fanout_item__request_id=request_pk, create_attempts=0)
    wanted = (mine | rest) if others else mine
    return list(wanted.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def _requeue(request: FanoutRequest, box_pks: list[UUID], refused: Refused, *, refusals: int) -> None:
    pause = refused.retry_after_seconds or AFTER_REFUSAL.after(refusals).total_seconds()
    is_over = request.cancelled_at is not None
    request.items.filter(box_id__in=box_pks).update(
        state=ItemState.REFUSED if is_over else ItemState.QUEUED,
        queue_reason=QueueReason.CANCELLED if is_over else queue_reason(refused.code),
        box=None,
        admitted_at=None,
        queued_at=ClockTimestamp(),
        next_attempt_at=None if is_over else ClockTimestamp() + timedelta(seconds=pause),
    )
    with connection.cursor() as cursor:
        cursor.execute("delete from conversation_boxes where id = any(%s)", [box_pks])
