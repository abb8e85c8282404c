"""What is wanted, and what was said about it."""

from __future__ import annotations

import pghistory
import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from base.guards import Immutable
from forge import limits
from forge.models.repository import Repository
from forge.states import IssueState
from work.models import checks


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pgtrigger.AnyChange("state", "state_reason")),
    fields=["state", "state_reason", "closed_at"],
    model_name="IssueHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "forge_issues_history"},
)
class Issue(models.Model):
    """One thing that is wanted of a repository. Its number is given once; who works on it is told by assignments."""

    id = models.BigAutoField(primary_key=True)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="issues")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=limits.TITLE_CHARACTERS)
    body = models.TextField(blank=True, default="")
    state = models.CharField(max_length=6, choices=IssueState.choices, default=IssueState.OPEN)
    state_reason = models.CharField(max_length=limits.REASON_CHARACTERS, null=True, blank=True)
    labels = ArrayField(models.CharField(max_length=limits.LABEL_CHARACTERS), default=list, blank=True)
    comment_count = models.PositiveIntegerField(default=0)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_issues"
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "number"], name="forge_issues_number_index"),
            models.UniqueConstraint(fields=["id", "repository"], name="forge_issues_id_repository_index"),
            checks.check("forge_issues_first_number_check", "number >= 1"),
            checks.check("forge_issues_title_check", "btrim(title) <> ''"),
            checks.check("forge_issues_body_check", f"octet_length(body) <= {limits.BODY_BYTES}"),
            checks.check(
                "forge_issues_state_check",
                "case state when 'open' then closed_at is null when 'closed' then closed_at is not null else false end",
            ),
        ]
        indexes = [
            models.Index(fields=["repository", "state", "-number"], name="forge_issues_state_index"),
            GinIndex(fields=["labels"], name="forge_issues_labels_index"),
        ]
        triggers = [
            Immutable(
                name="issue_1_identity",
                fields=["repository", "number", "author", "created_at"],
                message="issue identity is immutable",
            ),
            pgtrigger.Protect(name="issue_2_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"


class Comment(models.Model):
    """What somebody said about an issue. The repository stands beside it for lists, and must be the issue's."""

    id = models.BigAutoField(primary_key=True)
    issue = models.ForeignKey(Issue, on_delete=models.PROTECT, related_name="comments")
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="+")
    body = models.TextField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_comments"
        ordering = ["created_at", "id"]
        constraints = [
            checks.check(
                "forge_comments_body_check",
                f"btrim(body, E' \\t\\r\\n') <> '' and octet_length(body) <= {limits.BODY_BYTES}",
            ),
        ]
        indexes = [models.Index(fields=["issue", "created_at", "id"], name="forge_comments_list_index")]
        triggers = [
            pgtrigger.Trigger(
                name="comment_1_repository",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update,
                func="""if new.repository_id is distinct from (select repository_id from forge_issues where id = new.issue_id)
                    then raise exception 'comment belongs to another repository'; end if; return new;""",
            ),
            pgtrigger.Protect(name="comment_2_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return self.body[:40]
