"""The boxes of conversations, for everybody else: other apps, operators' shells and tests call these."""

from __future__ import annotations

from uuid import UUID

from boxes import activity, selectors
from boxes.commands import CommandOutput, run_command
from boxes.creation import create_box, has_settled_in
from boxes.ending import forget_box
from boxes.errors import BoxNotFound
from boxes.extending import extend_box
from boxes.installation import provider_ownership_marker
from boxes.models import Box
from boxes.stopping import stop_box

__all__ = [
    "CommandOutput",
    "create_box",
    "extend_box",
    "forget_box",
    "get_box",
    "has_settled_in",
    "list_boxes",
    "provider_ownership_marker",
    "run_command",
    "stop_box",
]


def list_boxes(conversation_id: UUID) -> list[Box]:
    """The conversation's boxes, newest first, stopped ones too, each with its `idle_since`. The provider is not asked."""
    return activity.attach(selectors.of_conversation(conversation_id))


def get_box(conversation_id: UUID, box_ref: str | UUID) -> Box:
    """The box with this id of ours, provider id or label. Raises BoxNotFound. The provider is not asked."""
    box = selectors.find(conversation_id, box_ref)
    if box is None:
        raise BoxNotFound
    return box
