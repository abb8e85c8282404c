"""Reads of the ledger, each with a known number of queries. None of them asks the provider or touches activity."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from accounts.models import User
from boxes.models import Box


def of_conversation(conversation_id: UUID) -> QuerySet[Box]:
    """The conversation's boxes, newest first. One query."""
    return Box.objects.filter(conversation_id=conversation_id)


def of_user(user: User) -> QuerySet[Box]:
    """The boxes of the user's conversations that are not deleted, newest first. One query."""
    return Box.objects.filter(conversation__visitor__user=user, conversation__deleted_at=None)


def find(conversation_id: UUID, ref: str | UUID) -> Box | None:
    """The conversation's box with this id of ours, provider id or label. One query; two for what only looks like an id of ours."""
    return matching(of_conversation(conversation_id), ref)


def find_owned(user: User, ref: str | UUID) -> Box | None:
    """The same among all boxes of the user."""
    return matching(of_user(user), ref)


def find_anywhere(ref: str | UUID) -> Box | None:
    """The same among all boxes of the installation: for staff."""
    return matching(Box.objects.all(), ref)


def reread(box: Box) -> bool:
    """Read the row again; False if it is gone: a reservation whose box the provider refused. One query."""
    try:
        box.refresh_from_db()
    except Box.DoesNotExist:
        return False
    return True


def matching(boxes: QuerySet[Box], ref: str | UUID) -> Box | None:
    """The box that `ref` means: by our id, else by provider id, else by label.

    Several rows may have had the label: the active one counts, else the one created last.
    """
    text = str(ref)
    if "\0" in text:
        return None
    our_id = _uuid(text)
    if (
        our_id is not None
    ):  # the usual case by far, and building the general query costs several times as much
        for box in boxes.filter(pk=our_id).order_by():
            return box
    ranks = [When(box_id=text, then=Value(1)), When(stopped_at__isnull=True, then=Value(2))]
    rank = Case(*ranks, default=Value(3), output_field=IntegerField())
    meant = boxes.filter(Q(box_id=text) | Q(label=text))
    return meant.order_by(rank, "-created_at", "-id").first()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
