"""Staff pages of conversations and their owners."""

from __future__ import annotations

from django.contrib import admin
from unfold.decorators import display

from accounts.models import User
from base.admin import ReadOnlyAdmin, link_column, link_to, relate, short, state_column
from conversations.models import Conversation, Message, Visitor

MESSAGE_COLOURS = {"streaming": "info", "complete": "success", "failed": "danger", "cancelled": "warning"}
OWNER = "conversation__visitor__user"
"""What a list names in `list_select_related` to show `owner_link`."""
FIND_BY_OWNER = "conversation__visitor__user__username"


def owner_link(conversation: Conversation) -> str | None:
    """A link to whoever owns the conversation: the user, or the record of a browser."""
    visitor = conversation.visitor
    return link_to(visitor.user or visitor)


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "owner", "created_at", "deleted_at")
    list_select_related = ("visitor__user",)
    ordering = ("-created_at",)
    search_fields = ("id", "visitor__user__username")
    search_help_text = "Id or user name"
    date_hierarchy = "created_at"
    fields = ("id", "owner", "created_at", "deleted_at")

    @display(description="owner")
    def owner(self, conversation: Conversation) -> str | None:
        return owner_link(conversation)


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "conversation_link", "role", "shown_status", "shown_content")
    list_select_related = ("conversation",)
    ordering = ("-created_at",)
    search_fields = ("id", "work_job_id", "conversation")
    search_help_text = "Id of the message, its job or its conversation"
    date_hierarchy = "created_at"
    conversation_link = link_column("conversation")
    shown_status = state_column("status", MESSAGE_COLOURS)

    @display(description="content")
    def shown_content(self, message: Message) -> str:
        return short(message.content, 100)


@admin.register(Visitor)
class VisitorAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "user", "created_at")
    list_select_related = ("user",)
    ordering = ("-created_at",)
    search_fields = ("id", "user", "user__username")
    search_help_text = "Id or user name"
    date_hierarchy = "created_at"
    fields = ("id", "user", "created_at")


relate(
    User,
    "Conversations",
    lambda user: Conversation.objects.filter(visitor__user=user).order_by("-created_at"),
)
relate(
    Conversation,
    "Messages",
    lambda conversation: conversation.messages.order_by("-created_at"),
    lambda conversation: {"conversation__id__exact": conversation.pk},
)
relate(Visitor, "Conversations", lambda visitor: visitor.conversations.order_by("-created_at"))
