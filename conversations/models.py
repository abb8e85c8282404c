"""Who owns what, and the transcript."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.lookups import LessThanOrEqual

from base.sql import OctetLength

LONGEST_CONTENT_BYTES = 1_048_576


class Visitor(models.Model):
    """The internal owner record: a user's, or that of a browser known by the hash of an opaque key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    browser_key_hash = models.BinaryField(max_length=32, null=True, unique=True)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="visitor"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "visitors"
        indexes = [models.Index(fields=["-created_at"], name="visitors_newest_index")]
        constraints = [
            models.CheckConstraint(
                condition=Q(browser_key_hash__isnull=True, user__isnull=False)
                | Q(browser_key_hash__isnull=False, user__isnull=True),
                name="visitors_identity_source_check",
            )
        ]

    def __str__(self) -> str:
        return str(self.user) if self.user_id else f"browser {str(self.id)[:8]}"


class Conversation(models.Model):
    """What boxes, runs and jobs belong to. A visitor has one that is not deleted."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    visitor = models.ForeignKey(Visitor, on_delete=models.PROTECT, related_name="conversations")
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "conversations"
        indexes = [models.Index(fields=["-created_at"], name="conversations_newest_index")]
        constraints = [
            models.UniqueConstraint(
                fields=["visitor"], condition=Q(deleted_at__isnull=True), name="conversations_visitor_index"
            )
        ]

    def __str__(self) -> str:
        return f"conversation {str(self.id)[:8]}"


class Message(models.Model):
    """One entry of a conversation's transcript."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        SYSTEM = "system"

    class Status(models.TextChoices):
        STREAMING = "streaming"
        COMPLETE = "complete"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="messages")
    role = models.CharField(max_length=9, choices=Role.choices)
    content = models.TextField(blank=True, default="")
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.COMPLETE)
    work_job_id = models.UUIDField(null=True, blank=True, help_text="The job whose report this is.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "messages"
        constraints = [
            models.UniqueConstraint(fields=["id", "conversation"], name="messages_id_conversation_index"),
            models.CheckConstraint(
                condition=Q(role__in=["user", "assistant", "system"]), name="messages_role_check"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["streaming", "complete", "failed", "cancelled"]),
                name="messages_status_check",
            ),
            models.CheckConstraint(
                condition=LessThanOrEqual(OctetLength("content"), LONGEST_CONTENT_BYTES),
                name="messages_content_hard_bound",
            ),
        ]
        indexes = [
            models.Index(fields=["conversation", "created_at", "id"], name="messages_history_index"),
            models.Index(fields=["-created_at"], name="messages_newest_index"),
            models.Index(
                fields=["work_job_id"], name="messages_work_job_index", condition=Q(work_job_id__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.content[:40]}"
