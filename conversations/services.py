"""The writers of visitors, conversations and messages."""

from __future__ import annotations

import hashlib
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.models import User
from base import hooks
from base.clock import database_now
from base.errors import CodedError
from conversations.conf import conversation_settings
from conversations.models import Conversation, Message, Visitor

LONGEST_USER_MESSAGE_BYTES = 8000
CONTEXT_MESSAGES = 32


class ConversationNotFound(CodedError):
    """There is no such conversation of this owner."""

    code = "conversation_not_found"


class EmptyMessage(CodedError):
    """A message needs some text."""

    code = "empty_message"


class MessageTooLong(CodedError):
    """A message has at most 8,000 bytes."""

    code = "message_too_long"


def ensure_conversation(owner: User | str) -> Conversation:
    """The one live conversation of a user, or of a browser by its opaque key; the same row every time, also in a race."""
    visitor = _ensure_visitor(owner)
    found = Conversation.objects.filter(visitor=visitor, deleted_at=None).first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            return _create_conversation(visitor)
    except IntegrityError:
        return Conversation.objects.get(visitor=visitor, deleted_at=None)


def _ensure_visitor(owner: User | str) -> Visitor:
    # Only the hash of a browser key is kept: whoever reads the table cannot act as the browser.
    identity = (
        {"user": owner}
        if isinstance(owner, User)
        else {"browser_key_hash": hashlib.sha256(owner.encode()).digest()}
    )
    visitor, _ = Visitor.objects.get_or_create(**identity)
    return visitor


def _create_conversation(visitor: Visitor) -> Conversation:
    conversation = Conversation.objects.create(visitor=visitor)
    greeting = conversation_settings().greeting
    if greeting:
        Message.objects.create(conversation=conversation, role=Message.Role.ASSISTANT, content=greeting)
    return conversation


def get_conversation_owner(conversation: Conversation | UUID) -> Visitor:
    """The visitor of a conversation; its account is `visitor.user`, null for a browser. Raises ConversationNotFound."""
    conversation_id = conversation.id if isinstance(conversation, Conversation) else conversation
    visitor = Visitor.objects.select_related("user").filter(conversations__id=conversation_id).first()
    if visitor is None:
        raise ConversationNotFound
    return visitor


def conversation_ids(user: User) -> list[UUID]:
    """The user's conversations, deleted ones too. One query."""
    return list(Conversation.objects.filter(visitor__user=user).values_list("pk", flat=True))


def conversation_of(user: User, conversation_id: UUID | None = None) -> Conversation:
    """The user's conversation, or the one with this id if it is theirs and not deleted. Raises ConversationNotFound."""
    if conversation_id is None:
        return ensure_conversation(user)
    found = Conversation.objects.filter(id=conversation_id, visitor__user=user, deleted_at=None).first()
    if found is None:
        raise ConversationNotFound
    return found


def provider_messages(conversation_id: UUID) -> list[Message]:
    """The last 32 complete messages of user and assistant, oldest first: the context of a later model call."""
    newest = (
        Message.objects.filter(
            conversation_id=conversation_id,
            status=Message.Status.COMPLETE,
            role__in=[Message.Role.USER, Message.Role.ASSISTANT],
        )
        .exclude(content="")
        .order_by("-created_at", "-id")[:CONTEXT_MESSAGES]
    )
    return list(reversed(newest))


def add_user_message(conversation: Conversation, content: str) -> Message:
    """Add what a person wrote. Raises EmptyMessage or MessageTooLong."""
    text = content.replace("\0", "").strip()
    if not text:
        raise EmptyMessage
    if len(text.encode()) > LONGEST_USER_MESSAGE_BYTES:
        raise MessageTooLong
    return Message.objects.create(conversation=conversation, role=Message.Role.USER, content=text)


def delete_conversation(conversation: Conversation) -> bool:
    """Mark a conversation deleted: its boxes are stopped, runs and jobs cancelled (by hook), message text blanked.

    Ledger rows stay. The next `ensure_conversation` makes a new one. Returns False if it was deleted before.
    """
    with transaction.atomic():
        deleted = Conversation.objects.filter(pk=conversation.pk, deleted_at=None).update(
            deleted_at=database_now()
        )
        if not deleted:
            return False
        Message.objects.filter(conversation=conversation).update(content="")
    hooks.owner_deleted(conversation)
    return True
