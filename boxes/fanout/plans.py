"""Making a plan, and ending what of it still waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from base import notify
from base.sql import ClockTimestamp
from boxes import admission, budgets, labels
from boxes.admission import Limits, Tenant
from boxes.budgets import Spending
from boxes.conf import BoxApi, box_api
from boxes.errors import BoxNotFound, InvalidRequest
from boxes.fanout.records import queue_reason, recount
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.states import ItemState, QueueReason

LARGEST_COUNT = 100


def admit(
    conversation_id: UUID,
    principal: Mapping[str, Any],
    count: int,
    labels: Sequence[str] | None = None,
    budgeted: bool = False,
) -> FanoutRequest:
    """Plan `count` boxes (1 to 100) and decide now which are admitted; the rest is queued. The provider is not asked.

    `labels`: exactly as many, else the next numbers. `principal` says who asked (`type`, `id`); `budgeted` raises the
    conversation's limit. Raises InvalidRequest `invalid_box_count` or `invalid_box_labels`, LabelTaken,
    ConversationNotFound.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= LARGEST_COUNT:
        raise InvalidRequest("invalid_box_count")
    wanted = None if labels is None else _checked_labels(labels, count)
    with transaction.atomic():
        tenant = admission.enter(conversation_id)
        request = _write_request(tenant, principal, count, budgeted)
        spent = _admit_items(tenant, request, _labels(tenant, wanted, count))
        recount(request)
        notify.notify(notify.DUE, "provisioning")
    if spent is not None:
        budgets.report(spent)
    request.refresh_from_db()
    return request


def get_request(conversation_id: UUID, request_id: UUID) -> FanoutRequest:
    """The conversation's plan. Raises BoxNotFound `fanout_not_found`."""
    found = FanoutRequest.objects.filter(conversation_id=conversation_id, pk=request_id).first()
    if found is None:
        raise BoxNotFound("fanout_not_found")
    return found


def cancel(request: FanoutRequest, reason: QueueReason = QueueReason.CANCELLED) -> FanoutRequest:
    """End what is still queued; what was admitted stays. Asking again changes nothing."""
    with transaction.atomic():
        locked = FanoutRequest.objects.select_for_update().get(pk=request.pk)
        locked.items.filter(state=ItemState.QUEUED).update(
            state=ItemState.REFUSED, queue_reason=reason, next_attempt_at=None
        )
        FanoutRequest.objects.filter(pk=locked.pk, cancelled_at=None).update(cancelled_at=ClockTimestamp())
        recount(locked)
    request.refresh_from_db()
    return request


def cancel_all(conversation_ids: Iterable[UUID]) -> None:
    """End what is queued in these conversations, whose owner is deleted."""
    queued = FanoutRequest.objects.filter(
        conversation_id__in=list(conversation_ids), items__state=ItemState.QUEUED
    )
    for request in queued.distinct():
        cancel(request, QueueReason.OWNER_DELETED)


def _checked_labels(given: Sequence[str], count: int) -> list[str]:
    return labels.checked_labels(given, count)


def _labels(tenant: Tenant, wanted: list[str] | None, count: int) -> list[str]:
    if wanted is None:
        return labels.next_labels(tenant.conversation_id, count)
    labels.require_free(tenant.conversation_id, wanted)
    return wanted


def _write_request(tenant: Tenant, principal: Mapping[str, Any], count: int, budgeted: bool) -> FanoutRequest:
    return FanoutRequest.objects.create(
        conversation_id=tenant.conversation_id,
        requesting_principal=dict(principal),
        requested_count=count,
        budgeted=budgeted,
        effective_limits=_effective_limits(box_api(), tenant, principal, budgeted),
        created_at=ClockTimestamp(),
    )


def _effective_limits(
    conf: BoxApi, tenant: Tenant, principal: Mapping[str, Any], budgeted: bool
) -> dict[str, Any]:
    """The limits under which the plan was decided, as they were then."""
    limits = Limits.of(conf, budgeted=budgeted)
    return {
        "conversation_active_limit": limits.conversation_boxes,
        "owner_active_limit": limits.owner_boxes,
        "global_active_limit": limits.global_boxes,
        "conversation_burn_rate_ceiling_microusd": limits.conversation_burn_microusd,
        "owner_burn_rate_ceiling_microusd": limits.owner_burn_microusd,
        "estimated_burn_rate_per_box_hour_microusd": limits.estimate_microusd,
        "budgeted": budgeted,
        "budgeted_by": dict(principal) if budgeted else None,
        "owner_id": str(tenant.user_id) if tenant.user_id else None,
    }


def _admit_items(tenant: Tenant, request: FanoutRequest, item_labels: list[str]) -> Spending | None:
    """Write one item a label, each with its reservation or with why it waits; the budget that was found spent, if any."""
    limits = Limits.of(box_api(), budgeted=request.budgeted)
    load, spent = admission.load_of(tenant), budgets.reached(tenant.user_id)
    numbers = _next_numbers(len(item_labels))
    items: list[FanoutItem] = []
    for position, label in enumerate(item_labels):
        code = admission.verdict(load, limits, has_owner=tenant.user_id is not None) or (
            spent.code if spent else None
        )
        box = None
        if code is None:
            box = admission.write_reservation(tenant, label=label, limits=limits, budgeted=request.budgeted)
            load = load.plus_one(limits.estimate_microusd)
        items.append(_item(request, position, numbers[position], label, limits, box, code))
    FanoutItem.objects.bulk_create(items)
    return spent


def _item(
    request: FanoutRequest,
    position: int,
    number: int,
    label: str,
    limits: Limits,
    box: Box | None,
    code: str | None,
) -> FanoutItem:
    return FanoutItem(
        request=request,
        conversation_id=request.conversation_id,
        position=position,
        queue_sequence=number,
        label=label,
        state=ItemState.ADMITTED if box else ItemState.QUEUED,
        queue_reason=queue_reason(code),
        box=box,
        estimated_burn_rate_microusd=limits.estimate_microusd,
        requesting_principal=request.requesting_principal,
        admitted_at=ClockTimestamp() if box else None,
        queued_at=None if box else ClockTimestamp(),
    )


def _next_numbers(count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("select nextval('fanout_queue_sequence') from generate_series(1, %s)", [count])
        return sorted(row[0] for row in cursor.fetchall())
