"""Labels: what a box is called within its conversation.

A label is held by the active box that has it and by a queued item of a plan; a stopped box gives it free. Numbers are never
given twice in a conversation.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import count as counting
from itertools import islice
from uuid import UUID

from django.db.models import Max

from boxes.errors import InvalidRequest, LabelTaken
from boxes.models import Box, FanoutItem
from boxes.models.labels import LONGEST_LABEL_BYTES, LabelNumber
from boxes.states import HOLDS_LABEL


def checked_label(label: object) -> str:
    """The label without surrounding white space. Raises InvalidRequest `invalid_box_label`."""
    cleaned = _cleaned(label)
    if cleaned is None:
        raise InvalidRequest("invalid_box_label")
    return cleaned


def checked_labels(labels: object, count: int) -> list[str]:
    """The `count` labels of a plan, cleaned, in their order.

    Raises InvalidRequest `invalid_box_labels`, or LabelTaken if one is there twice.
    """
    if not isinstance(labels, Sequence) or isinstance(labels, str | bytes) or len(labels) != count:
        raise InvalidRequest("invalid_box_labels")
    cleaned = [text for label in labels if (text := _cleaned(label)) is not None]
    if len(cleaned) != count:
        raise InvalidRequest("invalid_box_labels")
    if len(set(cleaned)) != count:
        raise LabelTaken(detail="Every label of a request must be different.")
    return cleaned


def next_labels(conversation_id: UUID, count: int) -> list[str]:
    """The next `count` labels `box-<number>`, above every number of the conversation, also of boxes long stopped.

    The caller holds the conversation's admission lock.
    """
    highest = max(_highest(Box, conversation_id), _highest(FanoutItem, conversation_id))
    held = held_labels(conversation_id)
    candidates = (f"box-{number}" for number in counting(highest + 1))
    return list(islice((label for label in candidates if label not in held), count))


def held_labels(conversation_id: UUID) -> set[str]:
    """The labels that no other box of the conversation may get now."""
    boxes = Box.objects.filter(conversation_id=conversation_id, stopped_at=None).values_list(
        "label", flat=True
    )
    items = FanoutItem.objects.filter(
        conversation_id=conversation_id, state__in=HOLDS_LABEL, released_at=None
    ).values_list("label", flat=True)
    return {*boxes, *items}


def require_free(conversation_id: UUID, labels: Iterable[str]) -> None:
    """Raises LabelTaken if one of the labels is held. The caller holds the conversation's admission lock."""
    if held_labels(conversation_id) & set(labels):
        raise LabelTaken


def _highest(model: type[Box] | type[FanoutItem], conversation_id: UUID) -> int:
    found = model._default_manager.filter(conversation_id=conversation_id).aggregate(
        highest=Max(LabelNumber("label"))
    )
    return found["highest"] or 0


def _cleaned(label: object) -> str | None:
    if not isinstance(label, str):
        return None
    text = label.strip()
    if not text or not _is_storable(text) or len(text.encode()) > LONGEST_LABEL_BYTES:
        return None
    return text


def _is_storable(text: str) -> bool:
    """No control characters, and no halves of characters, which are no UTF-8."""
    return not any(unicodedata.category(character) in {"Cc", "Cs"} for character in text)
