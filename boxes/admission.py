"""Admission: whether one more box may exist, decided in one short transaction in which nobody outside is asked.

Three advisory locks are taken, always in this order: the conversation's, its owner's, the installation's. Under them the
places and the estimates are counted, and the row that takes a place is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction

from base.clock import database_now
from base.errors import CodedError
from base.locks import hold_for_transaction
from boxes import budgets, labels
from boxes.budgets import SpentBudget
from boxes.conf import BoxApi, box_api
from boxes.errors import BurnRateReached, QuotaReached
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ConversationNotFound

INLINE_LEASE_SECONDS = 60  # above what creating, naming and recording take together


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose box it would be. `user_id` is None for a browser without an account."""

    conversation_id: UUID
    user_id: UUID | None

    @property
    def locks(self) -> tuple[str, str, str]:
        owner = self.user_id or f"anonymous:{self.conversation_id}"
        return (f"conversation_boxes:{self.conversation_id}", f"owner_boxes:{owner}", "global_boxes")


@dataclass(frozen=True, slots=True)
class Limits:
    """What is allowed: active boxes, and estimated micro-US-dollars an hour."""

    conversation_boxes: int
    owner_boxes: int
    global_boxes: int
    conversation_burn_microusd: int
    owner_burn_microusd: int
    estimate_microusd: int

    @classmethod
    def of(cls, conf: BoxApi, *, budgeted: bool) -> Limits:
        """The limits in force; a budgeted request raises only the conversation's number of boxes."""
        boxes = conf.maximum_active_boxes if budgeted else conf.default_maximum_active_boxes
        return cls(
            conversation_boxes=boxes,
            owner_boxes=conf.maximum_active_boxes_per_owner,
            global_boxes=conf.maximum_active_boxes_global,
            conversation_burn_microusd=conf.maximum_burn_rate_per_conversation_microusd,
            owner_burn_microusd=conf.maximum_burn_rate_per_owner_microusd,
            estimate_microusd=conf.estimated_burn_rate_per_box_hour_microusd,
        )


@dataclass(frozen=True, slots=True)
class Load:
    """What is active now. The owner's figures are those of all conversations of the user; zero without a user."""

    conversation_boxes: int = 0
    owner_boxes: int = 0
    global_boxes: int = 0
    conversation_burn_microusd: int = 0
    owner_burn_microusd: int = 0

    def plus_one(self, estimate_microusd: int) -> Load:
        """The load after one more box was admitted."""
        return replace(
            self,
            conversation_boxes=self.conversation_boxes + 1,
            owner_boxes=self.owner_boxes + 1,
            global_boxes=self.global_boxes + 1,
            conversation_burn_microusd=self.conversation_burn_microusd + estimate_microusd,
            owner_burn_microusd=self.owner_burn_microusd + estimate_microusd,
        )


def verdict(load: Load, limits: Limits, *, has_owner: bool) -> str | None:
    """The code of the first limit that one more box would pass; None if it may be admitted. Pure."""
    if load.conversation_boxes >= limits.conversation_boxes:
        return "box_quota_reached"
    if has_owner and load.owner_boxes >= limits.owner_boxes:
        return "box_owner_quota_reached"
    if load.global_boxes >= limits.global_boxes:
        return "box_global_quota_reached"
    if load.conversation_burn_microusd + limits.estimate_microusd > limits.conversation_burn_microusd:
        return "conversation_burn_rate_ceiling"
    if has_owner and load.owner_burn_microusd + limits.estimate_microusd > limits.owner_burn_microusd:
        return "owner_burn_rate_ceiling"
    return None


def refusal(code: str) -> CodedError:
    """The error that says a verdict."""
    return BurnRateReached(code) if code.endswith("_burn_rate_ceiling") else QuotaReached(code)


def enter(conversation_id: UUID) -> Tenant:
    """Begin an admission in the current transaction: wait for the locks, and make sure that there is an owner.

    Raises ConversationNotFound; also for one that is deleted, or is being deleted at this moment.
    """
    tenant = _tenant(conversation_id)
    hold_for_transaction(*tenant.locks)
    _require_alive(tenant)
    return tenant


def _tenant(conversation_id: UUID) -> Tenant:
    user_ids = Conversation.objects.filter(pk=conversation_id).values_list("visitor__user_id", flat=True)
    if not user_ids:
        raise ConversationNotFound
    return Tenant(conversation_id, user_ids[0])


def _require_alive(tenant: Tenant) -> None:
    """Hold off a deletion until this transaction ends, so that it finds the box that is being admitted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select 1 from conversations where id = %s and deleted_at is null for share",
            [tenant.conversation_id],
        )
        alive = cursor.fetchone() is not None
        if alive and tenant.user_id is not None:
            cursor.execute(
                "select 1 from users where id = %s and deleted_at is null for share", [tenant.user_id]
            )
            alive = cursor.fetchone() is not None
    if not alive:
        raise ConversationNotFound


def load_of(tenant: Tenant) -> Load:
    """Count what is active, in one statement. The caller holds the locks."""
    with connection.cursor() as cursor:
        cursor.execute(_LOAD, {"conversation": tenant.conversation_id, "user": tenant.user_id})
        row = cursor.fetchone()
    assert row is not None
    conversation, conversation_burn, owner, owner_burn, everywhere = row
    return Load(conversation, owner, everywhere, int(conversation_burn), int(owner_burn))


_LOAD = """
    select own.boxes, own.burn, owner.boxes, owner.burn, everywhere.boxes
    from (select count(*) as boxes, coalesce(sum(estimated_burn_rate_microusd), 0) as burn
          from conversation_boxes where stopped_at is null and conversation_id = %(conversation)s) own,
         (select count(*) as boxes, coalesce(sum(estimated_burn_rate_microusd), 0) as burn
          from conversation_boxes box
          join conversations conversation on conversation.id = box.conversation_id
          join visitors visitor on visitor.id = conversation.visitor_id
          where box.stopped_at is null and visitor.user_id = %(user)s) owner,
         (select count(*) as boxes from conversation_boxes where stopped_at is null) everywhere
"""


def reserve(
    conversation_id: UUID, *, label: str | None = None, budgeted: bool = False, create_key: str | None = None
) -> tuple[Box, bool]:
    """Take a place for one box, leased to the caller for one attempt at creating it; True with it.

    With a `create_key` that has a row already, that row and False. Raises ConversationNotFound, QuotaReached,
    BurnRateReached, SpentBudget, LabelTaken, InvalidRequest `invalid_box_label`.
    """
    wanted = None if label is None else labels.checked_label(label)
    with transaction.atomic():
        tenant = enter(conversation_id)
        known = Box.objects.filter(create_key=create_key).first() if create_key else None
        if known is not None:
            return _same_request(known, tenant), False
        limits = Limits.of(box_api(), budgeted=budgeted)
        code = verdict(load_of(tenant), limits, has_owner=tenant.user_id is not None)
        if code is not None:
            raise refusal(code)
        spent = budgets.reached(tenant.user_id)
        if spent is not None:
            raise SpentBudget(spent)
        box = write_reservation(
            tenant,
            label=_label(conversation_id, wanted),
            limits=limits,
            budgeted=budgeted,
            create_key=create_key,
            leased=True,
        )
    return box, True


def _label(conversation_id: UUID, wanted: str | None) -> str:
    if wanted is None:
        return labels.next_labels(conversation_id, 1)[0]
    labels.require_free(conversation_id, [wanted])
    return wanted


def write_reservation(
    tenant: Tenant,
    *,
    label: str,
    limits: Limits,
    budgeted: bool,
    create_key: str | None = None,
    leased: bool = False,
) -> Box:
    """Write the row that takes the place, with all that asking the provider (again) needs.

    `leased`: the first attempt is the caller's, at once, and counts before it is made. Otherwise the worker makes it.
    """
    box_id, now = uuid4(), database_now()
    return Box.objects.create(
        id=box_id,
        conversation_id=tenant.conversation_id,
        label=label,
        budgeted=budgeted,
        estimated_burn_rate_microusd=limits.estimate_microusd,
        create_key=create_key or f"oab-{box_id}",
        create_body=create_body(box_api()),
        create_attempts=int(leased),
        create_attempted_at=now if leased else None,
        created_at=now,
        next_provision_at=now,
        generation=int(leased),
        lease_expires_at=now + timedelta(seconds=INLINE_LEASE_SECONDS) if leased else None,
    )


def create_body(conf: BoxApi) -> Mapping[str, Any]:
    """What the provider is asked for: kept with the row, since a repeated request must be the same."""
    return {"ttl_seconds": conf.ttl_seconds, "setup_script": conf.setup_script}


def _same_request(known: Box, tenant: Tenant) -> Box:
    if known.conversation_id != tenant.conversation_id:
        raise CodedError("idempotency_conflict", "This key was used for another conversation.")
    return known
