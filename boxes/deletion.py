"""What the deletion of an owner means for boxes: they are stopped, and their rows stay."""

from __future__ import annotations

from uuid import UUID

import structlog

from accounts.models import User
from boxes import fanout
from boxes.models import Box
from boxes.states import StopReason
from boxes.stopping import ask_stop
from conversations.models import Conversation

log = structlog.get_logger(__name__)


def stop_boxes_of(owner: User | Conversation) -> int:
    """End what the deleted user or conversation has queued, and have every active box stopped by the worker.

    The stops are written down, so that they happen however often the provider fails. Returns how many were asked for.
    """
    conversation_ids = _conversations(owner)
    fanout.cancel_all(conversation_ids)
    active = Box.objects.filter(conversation_id__in=conversation_ids, stopped_at=None)
    asked = sum(ask_stop(box, StopReason.OWNER_DELETED) for box in active)
    log.info("owner_deleted", owner=str(owner.pk), kind=type(owner).__name__, boxes=asked)
    return asked


def _conversations(owner: User | Conversation) -> list[UUID]:
    if isinstance(owner, Conversation):
        return [owner.pk]
    return list(Conversation.objects.filter(visitor__user=owner).values_list("pk", flat=True))
