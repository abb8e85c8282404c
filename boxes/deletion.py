"""What the deletion of an owner means for boxes: they are stopped, and their rows stay."""

from __future__ import annotations

import structlog

from accounts.models import User
from boxes import fanout
from boxes.models import Box
from boxes.states import StopReason
from boxes.stopping import ask_stop
from conversations.models import Conversation
from conversations.services import conversation_ids

log = structlog.get_logger(__name__)


def stop_boxes_of(owner: User | Conversation) -> int:
    """End what the deleted user or conversation has queued, and have every active box stopped by the worker.

    The stops are written down, so that they happen however often the provider fails. Returns how many were asked for.
    """
    ended = [owner.pk] if isinstance(owner, Conversation) else conversation_ids(owner)
    fanout.cancel_all(ended)
    active = Box.objects.filter(conversation_id__in=ended, stopped_at=None)
    asked = sum(ask_stop(box, StopReason.OWNER_DELETED) for box in active)
    log.info("owner_deleted", owner=str(owner.pk), kind=type(owner).__name__, boxes=asked)
    return asked
