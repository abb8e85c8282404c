"""Issues: numbered in the order they were made, 1 upward, without gaps, each number once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from accounts.models import User
from base.clock import database_now
from forge import limits
from forge.errors import FieldsInvalid, RepositoryNotFound
from forge.models import Comment, Issue, Repository
from forge.states import IssueState

_NEXT_NUMBER = """
    update forge_repositories set last_issue_number = last_issue_number + 1 where id = %s returning last_issue_number
"""


def create_issue(
    repository: Repository,
    *,
    title: str,
    body: str = "",
    author: User | None = None,
    labels: Sequence[str] = (),
) -> Issue:
    """Open an issue with the repository's next number. Raises FieldsInvalid; then no number is used up."""
    values = {"title": title, "body": body, "labels": list(labels)}
    check(values)
    with transaction.atomic():
        # The counter's row is locked until commit: whoever comes next waits, and a rollback gives the number back.
        return Issue.objects.create(
            repository=repository, number=_next_number(repository), author=author, **_clean(values)
        )


def update_issue(issue: Issue, **changes: Any) -> Issue:
    """Change title, body, labels or state (`open`, `closed` with a state_reason); returns the issue. Raises FieldsInvalid."""
    check(changes)
    values = _clean(changes)
    with transaction.atomic():
        issue = Issue.objects.select_for_update().get(pk=issue.pk)
        now = database_now()
        if "state" in values and values["state"] != issue.state:
            values["closed_at"] = now if values["state"] == IssueState.CLOSED else None
            values.setdefault("state_reason", None)
        for name, value in values.items():
            setattr(issue, name, value)
        issue.updated_at = now
        issue.save(update_fields=[*values, "updated_at"])
    return issue


def create_comment(issue: Issue, *, body: str, author: User | None = None) -> Comment:
    """Add a comment; the issue's counter grows in the same transaction. Raises FieldsInvalid."""
    check({"body": body})
    if not body.strip():
        raise FieldsInvalid({"body": "must not be blank"})
    with transaction.atomic():
        comment = Comment.objects.create(
            issue=issue, repository_id=issue.repository_id, body=body, author=author
        )
        Issue.objects.filter(pk=issue.pk).update(
            comment_count=F("comment_count") + 1, updated_at=database_now()
        )
    return comment


def check(values: dict[str, Any]) -> None:
    """Raises FieldsInvalid with what is wrong, by field."""
    wrong: dict[str, str] = {}
    title = values.get("title", "x")
    if not _is_text(title) or not title.strip() or len(title.strip()) > limits.TITLE_CHARACTERS:
        wrong["title"] = f"1 to {limits.TITLE_CHARACTERS} characters"
    body = values.get("body", "")
    if not _is_text(body) or len(body.encode()) > limits.BODY_BYTES:
        wrong["body"] = f"at most {limits.BODY_BYTES:,} bytes"
    labels = values.get("labels", [])
    if len(labels) > limits.LABELS or not all(_is_label(label) for label in labels):
        wrong["labels"] = f"at most {limits.LABELS}, each 1 to {limits.LABEL_CHARACTERS} characters"
    if values.get("state", IssueState.OPEN) not in IssueState.values:
        wrong["state"] = f"one of {', '.join(IssueState.values)}"
    reason = values.get("state_reason")
    if reason is not None and (not _is_text(reason) or len(reason) > limits.REASON_CHARACTERS):
        wrong["state_reason"] = f"at most {limits.REASON_CHARACTERS} characters"
    unknown = set(values) - {"title", "body", "labels", "state", "state_reason"}
    wrong |= dict.fromkeys(sorted(unknown), "there is no such field")
    if wrong:
        raise FieldsInvalid(wrong)


def _clean(values: dict[str, Any]) -> dict[str, Any]:
    cleaned = dict(values)
    if "title" in cleaned:
        cleaned["title"] = cleaned["title"].strip()
    if "labels" in cleaned:
        cleaned["labels"] = list(dict.fromkeys(label.strip() for label in cleaned["labels"]))
    return cleaned


def _next_number(repository: Repository) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_NUMBER, [repository.pk])
        row = cursor.fetchone()
    if row is None:
        raise RepositoryNotFound
    return int(row[0])


def _is_text(value: object) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_label(value: object) -> bool:
    return isinstance(value, str) and _is_text(value) and 1 <= len(value.strip()) <= limits.LABEL_CHARACTERS
