"""A Git repository, who may use it, and which computers."""

from __future__ import annotations

import uuid

import pghistory
import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now

from base.guards import Immutable
from forge import limits
from forge.states import Lifecycle, Operation, Role, Visibility
from work.models import Machine, checks

NAME_SHAPE = r"name ~ '^[a-z0-9][a-z0-9._-]{0,63}$' and name !~ '[.][.]|[.]$|[.]git$'"


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(
        condition=pgtrigger.AnyChange("visibility", "default_branch", "protected_branches", "lifecycle_state")
    ),
    fields=["visibility", "default_branch", "protected_branches", "lifecycle_state"],
    model_name="RepositoryHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "forge_repositories_history"},
)
class Repository(models.Model):
    """A bare repository on disk, under a key that says nothing, and what the forge knows about it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="repositories",
        help_text="its namespace",
    )
    name = models.CharField(max_length=limits.REPOSITORY_NAME_CHARACTERS)
    description = models.CharField(max_length=limits.DESCRIPTION_CHARACTERS, blank=True, default="")
    visibility = models.CharField(max_length=7, choices=Visibility.choices, default=Visibility.PRIVATE)
    default_branch = models.CharField(max_length=limits.BRANCH_BYTES, default="main")
    protected_branches = ArrayField(
        models.CharField(max_length=limits.BRANCH_BYTES),
        default=list,
        blank=True,
        help_text="besides the default branch, main and master",
    )
    lifecycle_state = models.CharField(
        max_length=12, choices=Lifecycle.choices, default=Lifecycle.PROVISIONING
    )
    ready_at = models.DateTimeField(null=True, blank=True)
    storage_key = models.CharField(max_length=64, unique=True, editable=False)
    last_issue_number = models.PositiveIntegerField(default=0, editable=False)
    pushed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_repositories"
        verbose_name_plural = "repositories"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint("owner", Lower("name"), name="forge_repositories_name_index"),
            checks.check("forge_repositories_name_check", NAME_SHAPE),
            checks.one_of("forge_repositories_visibility_check", "visibility", Visibility.values),
            checks.one_of("forge_repositories_lifecycle_check", "lifecycle_state", Lifecycle.values),
            models.CheckConstraint(
                condition=~Q(lifecycle_state="ready") | Q(ready_at__isnull=False),
                name="forge_repositories_ready_check",
            ),
            checks.check("forge_repositories_branch_check", "octet_length(default_branch) between 1 and 255"),
            checks.check("forge_repositories_storage_key_check", "storage_key ~ '^[0-9a-f]{32,64}$'"),
        ]
        indexes = [models.Index(fields=["owner", "-created_at", "-id"], name="forge_repositories_list_index")]
        triggers = [
            Immutable(
                name="repository_1_identity",
                fields=["owner", "name", "storage_key", "created_at"],
                message="repository identity is immutable",
            ),
            pgtrigger.Trigger(
                name="repository_2_numbers",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(new__last_issue_number__lt=pgtrigger.F("old__last_issue_number")),
                func="raise exception 'issue numbers are never reused';",
            ),
            pgtrigger.Protect(name="repository_3_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.owner.slug}/{self.name}"

    @property
    def is_ready(self) -> bool:
        return self.lifecycle_state == Lifecycle.READY


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pgtrigger.AnyChange("role")),
    pghistory.DeleteEvent(),
    fields=["repository", "user", "role"],
    model_name="MembershipHistory",
    obj_field=None,
    meta={"db_table": "forge_memberships_history"},
)
class Membership(models.Model):
    """What a user may do with a repository."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="repository_memberships"
    )
    role = models.CharField(max_length=11, choices=Role.choices)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_memberships"
        verbose_name = "member of a repository"
        verbose_name_plural = "members of repositories"
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "user"], name="forge_memberships_member_index"),
            checks.one_of("forge_memberships_role_check", "role", Role.values),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role}"


class MachineGrant(models.Model):
    """What a paired computer may do with a repository by its own token; only while it is active and its token is valid."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="machine_grants")
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="repository_grants")
    operations = ArrayField(models.CharField(max_length=5, choices=Operation.choices))
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_machine_grants"
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "machine"], name="forge_machine_grants_machine_index"
            ),
            checks.check(
                "forge_machine_grants_operations_check",
                "cardinality(operations) > 0 and operations <@ array['read', 'write']::varchar[]",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.machine} may {' and '.join(self.operations)}"
