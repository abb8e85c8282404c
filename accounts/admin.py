"""Staff pages of users, roles and tokens, and of what the API remembers across its processes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.models import IdempotencyKey, RateWindow, User
from accounts.staff.tokens import ApiTokenAdmin
from base.admin import ReadOnlyAdmin, StaffAdmin

ONLY_SUPERUSERS_GIVE = ("is_superuser", "user_permissions")

admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(StaffAdmin, StockUserAdmin):
    """Who may change users may not make themselves or others superusers, nor change one. Nobody changes who was deleted."""

    form = UserChangeForm
    add_form = UserCreationForm
    add_fieldsets = StockUserAdmin.add_fieldsets
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "github_login", "slug", "is_staff", "is_active", "last_login", "deleted_at")
    list_filter = ("is_staff", "is_superuser", "is_active", "groups")
    search_exactly = False
    search_fields = ("username", "github_login", "slug", "email")
    search_help_text = "Name, login or address"
    readonly_fields = ("slug", "github_id", "github_login", "github_avatar_url", "deleted_at", "last_login",
                       "date_joined")  # fmt: skip
    fieldsets = (
        *(StockUserAdmin.fieldsets or ()),
        ("Identity", {"fields": ("slug", "github_id", "github_login", "github_avatar_url", "deleted_at")}),
    )

    def get_sortable_by(self, request: HttpRequest) -> Any:
        """There are not so many users that sorting them costs anything."""
        return self.get_list_display(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if _is_superuser(request) else (*fields, *ONLY_SUPERUSERS_GIVE)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may only look is not shown anything of the password."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return sets
        return [
            (title, options | {"fields": _without_password(options["fields"])}) for title, options in sets
        ]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is not None and (obj.deleted_at or (obj.is_superuser and not _is_superuser(request))):
            return False
        return bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # the ledger refers to users: see accounts.services.delete_user


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_superuser)


def _without_password(fields: Any) -> tuple[Any, ...]:
    return tuple(name for name in fields if name != "password")


@admin.register(Group)
class GroupAdmin(StaffAdmin, StockGroupAdmin):
    search_exactly = False


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    list_display = ("route", "user", "status", "created_at", "locked_until")
    list_select_related = ("user",)
    ordering = ("-created_at",)
    search_fields = ("id", "user__username")
    search_help_text = "Id or user name"
    date_hierarchy = "created_at"
    fields = ("id", "route", "user", "status", "created_at", "locked_until")

    def get_queryset(self, request: HttpRequest) -> Any:
        """An answer may hold what is shown once."""
        return super().get_queryset(request).defer("answer")


@admin.register(RateWindow)
class RateWindowAdmin(ReadOnlyAdmin):
    list_display = ("principal", "operation", "window_start", "count")
    ordering = ("-window_start",)
    search_fields = ("principal",)
    search_help_text = "Principal, as in user:<id>"


__all__ = ["ApiTokenAdmin", "GroupAdmin", "UserAdmin"]
