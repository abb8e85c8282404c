"""The roles of staff: groups that begin with these permissions, and that the installation's own people change as they like.

A migration makes the groups once. A permission is given to them once, when it comes into being; so what somebody took away
from a role, or added to it, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
ROLES = (VIEWER, OPERATOR, ADMIN)

OPERATES = frozenset(
    {
        "boxes.stop_box",
        "boxes.handle_reconciliationevent",
        "boxes.cancel_fanoutrequest",
        "boxes.run_scheduleslot",
        "runs.cancel_run",
        "work.cancel_job",
        "work.revoke_machine",
        "work.close_incident",
        "forge.finish_assignment",
        "accounts.act_for_owners",
        "webhooks.switch_subscription",
        "webhooks.replay_delivery",
    }
)
"""What an operator may do beside looking."""

ADMINISTERS = frozenset(
    {
        "boxes.forget_box",
        "accounts.add_user",
        "accounts.change_user",
        "accounts.add_apitoken",
        "accounts.revoke_apitoken",
        "auth.add_group",
        "auth.change_group",
        "auth.delete_group",
    }
)
"""What an administrator may do beside what an operator may."""


def has(role: str, permission: str) -> bool:
    """Whether the role begins with the permission, given as `app.codename`."""
    if permission.split(".", 1)[1].startswith("view_"):
        return True
    if permission in OPERATES:
        return role in {OPERATOR, ADMIN}
    return permission in ADMINISTERS and role == ADMIN


def make_groups(groups: Any) -> None:
    """The three groups; those that are there already stay as they are. `groups` is the model, for a migration its old one."""
    for role in ROLES:
        groups.objects.get_or_create(name=role)


def grant(groups: Any, permissions: Iterable[Any]) -> None:
    """Give each role those of these permissions that it begins with. A role whose group was removed gets none."""
    named = [
        (permission, f"{permission.content_type.app_label}.{permission.codename}")
        for permission in permissions
    ]
    for group in groups.objects.filter(name__in=ROLES):
        group.permissions.add(*(permission for permission, name in named if has(group.name, name)))


class NewPermissions:
    """Grants the permissions that a run of `migrate` brought: those that were not there when it began."""

    def __init__(self) -> None:
        self._known: set[int] | None = None

    def before(self, **_: Any) -> None:
        self._known = set(_permissions().values_list("pk", flat=True)) if _has_table() else set()

    def after(self, **_: Any) -> None:
        if self._known is None:
            return
        from django.contrib.auth.models import Group

        new = _permissions().exclude(pk__in=self._known).select_related("content_type")
        grant(Group, new)
        self._known = None


def _permissions() -> QuerySet[Any]:
    from django.contrib.auth.models import Permission

    return Permission.objects.order_by("pk")


def _has_table() -> bool:
    from django.contrib.auth.models import Permission
    from django.db import connection

    return Permission._meta.db_table in connection.introspection.table_names()
