"""Staff pages of users, roles and tokens."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.models import ApiToken, User
from base.admin import ReadOnlyAdmin

admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(StockUserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "github_login", "slug", "is_staff", "is_active", "last_login", "deleted_at")
    search_fields = ("username", "github_login", "slug", "email")
    readonly_fields = (
        "slug",
        "github_id",
        "github_login",
        "github_avatar_url",
        "deleted_at",
        "last_login",
        "date_joined",
    )
    fieldsets = (
        *(StockUserAdmin.fieldsets or ()),
        ("Identity", {"fields": ("slug", "github_id", "github_login", "github_avatar_url", "deleted_at")}),
    )

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False  # the ledger refers to users: see accounts.services.delete_user


@admin.register(Group)
class GroupAdmin(StockGroupAdmin, ModelAdmin):
    pass


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("name", "user", "scopes", "created", "expiry", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    fields = ("name", "user", "scopes", "created", "expiry", "last_used_at", "revoked_at")
