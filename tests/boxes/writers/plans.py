"""Plans of several boxes, and what became of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F

from boxes import fanout
from boxes.models import FanoutItem, FanoutRequest, Installation
from conversations.models import Conversation

PRINCIPAL = {"type": "user", "id": "owner"}


def admit(conversation: Conversation, count: int, **options: Any) -> FanoutRequest:
    return fanout.admit(conversation.id, PRINCIPAL, count, **options)


def states(request: FanoutRequest) -> list[str]:
    return list(request.items.order_by("position").values_list("state", flat=True))


def reasons(request: FanoutRequest) -> list[str | None]:
    return list(request.items.order_by("position").values_list("queue_reason", flat=True))


def pass_queue_time(seconds: float) -> None:
    waiting = FanoutItem.objects.exclude(next_attempt_at=None)
    waiting.update(next_attempt_at=F("next_attempt_at") - timedelta(seconds=seconds))
    held = Installation.objects.exclude(creates_held_until=None)
    held.update(creates_held_until=F("creates_held_until") - timedelta(seconds=seconds))
