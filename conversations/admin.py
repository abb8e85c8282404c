"""Staff pages of conversations."""

from __future__ import annotations

from django.contrib import admin

from base.admin import ReadOnlyAdmin
from conversations.models import Conversation, Message


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("id", "visitor", "created_at", "deleted_at")
    list_select_related = ("visitor__user",)
    search_fields = ("id", "visitor__user__username")


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "conversation", "role", "status", "content")
    list_filter = ("role", "status")
    search_fields = ("conversation__id",)
