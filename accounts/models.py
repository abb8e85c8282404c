"""Users, their API tokens, and what the API must remember across its processes."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils.text import slugify
from knox.models import AbstractAuthToken

from accounts.scopes import Scope


class User(AbstractUser):  # type: ignore[django-manager-missing]  # knox names the tokens' relation
    """A person with an account: staff who sign in with a password, or an owner known by a GitHub identity.

    Never deleted, since the ledger refers to it: deleting sets `deleted_at`, blanks what is personal and revokes tokens.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(
        max_length=64, unique=True, help_text="Namespace of the user's repositories; never changes."
    )
    github_id = models.BigIntegerField(null=True, blank=True, unique=True)
    github_login = models.CharField(max_length=255, blank=True, default="")
    github_avatar_url = models.URLField(max_length=500, blank=True, default="")
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(AbstractUser.Meta):
        db_table = "users"
        permissions = [("act_for_owners", "Can change objects of other owners through the API")]
        constraints = [
            models.UniqueConstraint(Lower("slug"), name="users_slug_index"),
            models.CheckConstraint(
                condition=Q(deleted_at__isnull=True) | (Q(is_active=False) & Q(github_id__isnull=True)),
                name="users_deleted_cannot_sign_in_check",
            ),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.slug = self.slug or _free_slug(self.github_login or self.username)
        super().save(*args, **kwargs)


def _free_slug(name: str) -> str:
    """The name as a namespace; another user's older claim to it gets this one a number."""
    base = slugify(name)[:56] or "user"
    known = User.objects.filter(slug__istartswith=base).values_list(Lower("slug"), flat=True)
    taken = set(known)
    return next(
        slug for n in range(1, len(taken) + 2) if (slug := base if n == 1 else f"{base}-{n}") not in taken
    )


class ApiToken(AbstractAuthToken):
    """A bearer token of a user. Only its digest is stored; expired and revoked ones are kept for the record."""

    id = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80, blank=True, default="")
    scopes = models.JSONField(default=list, help_text="What the token may do: " + ", ".join(Scope.values))
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "api_tokens"
        verbose_name = "API token"
        permissions = [("revoke_apitoken", "Can revoke API token")]
        constraints = [models.UniqueConstraint("digest", "user", name="api_tokens_digest_user_index")]

    def __str__(self) -> str:
        return f"{self.name or 'token'} of {self.user}"


class IdempotencyKey(models.Model):
    """The first answer of a creating request, so that a repeated one gets it again. Kept for 24 hours."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    route = models.CharField(max_length=200)
    key_digest = models.BinaryField(max_length=32)
    body_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(
        null=True, help_text="null while the first request is still at work"
    )
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField()
    locked_until = models.DateTimeField(help_text="until when the first request may still be at work")

    class Meta:
        db_table = "api_idempotency_keys"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "route", "key_digest"], name="api_idempotency_keys_key_index"
            )
        ]
        indexes = [models.Index(fields=["created_at"], name="api_idempotency_keys_age_index")]

    def __str__(self) -> str:
        return f"{self.route} {self.status or 'at work'}"


class RateWindow(models.Model):
    """How often a principal did something in one fixed window; shared by all web processes."""

    id = models.BigAutoField(primary_key=True)
    principal = models.CharField(max_length=100)
    operation = models.CharField(max_length=40)
    window_start = models.DateTimeField()
    count = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "rate_windows"
        constraints = [
            models.UniqueConstraint(
                fields=["principal", "operation", "window_start"], name="rate_windows_window_index"
            )
        ]
        indexes = [models.Index(fields=["window_start"], name="rate_windows_age_index")]

    def __str__(self) -> str:
        return f"{self.principal} {self.operation} {self.count}"
