"""Bodies and answers of the conversations' API."""

from __future__ import annotations

from rest_framework import serializers

from base.api.serializers import StrictSerializer
from conversations.models import Conversation, Message


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    class Meta:
        model = Conversation
        fields = ("id", "created_at")
        read_only_fields = fields


class MessageSerializer(serializers.ModelSerializer[Message]):
    class Meta:
        model = Message
        fields = ("id", "conversation", "role", "content", "status", "work_job_id", "created_at")
        read_only_fields = fields


class CreateMessageSerializer(StrictSerializer):
    content = serializers.CharField(trim_whitespace=False, allow_blank=True, max_length=1_048_576)
