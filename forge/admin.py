"""Staff pages of the forge."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from base.admin import ReadOnlyAdmin
from forge import assignments
from forge.models import (
    Assignment,
    AssignmentCredential,
    Comment,
    Issue,
    MachineGrant,
    Membership,
    Push,
    Repository,
)


@admin.register(Repository)
class RepositoryAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "owner",
        "visibility",
        "lifecycle_state",
        "default_branch",
        "pushed_at",
        "created_at",
    )
    list_filter = ("visibility", "lifecycle_state")
    list_select_related = ("owner",)
    search_fields = ("name", "owner__slug", "storage_key")


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    list_display = ("repository", "user", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("repository__owner", "user")
    search_fields = ("repository__name", "user__slug")


@admin.register(MachineGrant)
class MachineGrantAdmin(ReadOnlyAdmin):
    list_display = ("repository", "machine", "operations", "created_at")
    list_select_related = ("repository__owner", "machine")


@admin.register(Issue)
class IssueAdmin(ReadOnlyAdmin):
    list_display = ("number", "title", "repository", "state", "author", "created_at")
    list_filter = ("state",)
    list_select_related = ("repository__owner", "author")
    search_fields = ("title", "repository__name")


@admin.register(Comment)
class CommentAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "issue", "author")
    list_select_related = ("issue", "author")


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "issue",
        "branch",
        "target_kind",
        "state",
        "failure_reason",
        "terminal_commit",
        "admitted_at",
        "deadline_at",
        "finished_at",
    )
    list_filter = ("state", "target_kind")
    list_select_related = ("issue",)
    search_fields = ("id", "branch", "repository__name", "conversation__id")
    date_hierarchy = "admitted_at"
    actions = ("cancel",)

    @admin.action(description="Cancel these attempts")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Assignment]) -> None:
        for assignment in queryset:
            assignments.cancel(assignment)
        self.message_user(
            request, "Their credentials are dead, and what they started will end.", messages.SUCCESS
        )

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_staff)


@admin.register(AssignmentCredential)
class AssignmentCredentialAdmin(ReadOnlyAdmin):
    list_display = (
        "assignment",
        "last_four",
        "repository",
        "branch",
        "deliveries",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("assignment", "repository__owner")
    exclude = ("token_digest",)


@admin.register(Push)
class PushAdmin(ReadOnlyAdmin):
    list_display = ("repository", "sequence", "principal", "duration_ms", "recovered", "recorded_at")
    list_select_related = ("repository__owner",)
    list_filter = ("recovered",)
    search_fields = ("principal", "repository__name")
