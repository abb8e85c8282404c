"""Issues that a push closes: a user's commits, new on the default branch, that say so (`fixes #12`)."""

from __future__ import annotations

import re

import structlog

from forge import git, limits
from forge.models import Issue, Repository
from forge.names import ref_of
from forge.receipts import Changes
from forge.services import update_issue
from forge.smart_http.access import Caller, Kind
from forge.states import IssueState

log = structlog.get_logger(__name__)

_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d{1,9})\b", re.IGNORECASE)


def numbers_in(message: str) -> list[int]:
    """The issues that a commit message says it closes, in order, each once."""
    return list(dict.fromkeys(int(number) for number in _CLOSES.findall(message)))


def close_by_push(repository: Repository, who: Caller, moved: Changes) -> list[int]:
    """Close what the new commits of the default branch say; returns the numbers. What goes wrong is logged, never raised:
    the push is done."""
    change = moved.get(ref_of(repository.default_branch))
    if who.kind is not Kind.USER or change is None or change["new"] is None:
        return []
    try:
        return _close(repository, change["old"], change["new"])
    except Exception:
        log.exception("closing_references_failed", repository=str(repository.pk))
        return []


def _close(repository: Repository, old: str | None, new: str) -> list[int]:
    closed = []
    path = git.path_of(repository.storage_key)
    for commit, message in git.commits_between(path, old, new, limits.CLOSING_COMMITS):
        open_issues = Issue.objects.filter(
            repository=repository, number__in=numbers_in(message), state=IssueState.OPEN
        )
        for issue in open_issues:
            update_issue(issue, state=IssueState.CLOSED, state_reason=f"commit:{commit}")
            closed.append(issue.number)
    return closed
