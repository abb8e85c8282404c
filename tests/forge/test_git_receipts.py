"""What a push leaves behind: its receipt, and the issues that its commits close."""

from __future__ import annotations

import pytest

from forge.models import Push, PushIntent
from tests.forge.conftest import refs_of
from tests.forge.pushes import PATH

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_a_push_that_moves_nothing_leaves_no_receipt(git, work, secret, repository):
    before = Push.objects.count()

    git.must("push", git.url(PATH, secret), "main", cwd=work)

    assert Push.objects.count() == before


def test_a_receipt_names_each_ref_of_a_push(git, work, secret, repository, owner):
    first = refs_of(repository)["refs/heads/main"]
    second = git.commit(work, "second")
    git.must("tag", "v1", cwd=work)
    git.must("push", "--quiet", git.url(PATH, secret), "main", "v1", cwd=work)
    git.must("push", "--quiet", git.url(PATH, secret), ":v1", cwd=work)

    made, deleted = Push.objects.filter(repository=repository).order_by("sequence")[1:]

    assert made.principal == f"user:{owner.pk}"
    assert made.refs == {
        "refs/heads/main": {"old": first, "new": second},
        "refs/tags/v1": {"old": None, "new": second},
    }
    assert deleted.refs == {"refs/tags/v1": {"old": second, "new": None}}
    assert made.duration_ms > 0
    assert not PushIntent.objects.exists()


def test_commits_on_the_default_branch_close_what_they_say(git, work, secret, repository, issue):
    git.must("checkout", "--quiet", "-b", "side", cwd=work)
    git.commit(work, "Fixes #1")
    git.must("push", "--quiet", git.url(PATH, secret), "side", cwd=work)
    issue.refresh_from_db()
    assert issue.state == "open"

    git.must("push", "--quiet", git.url(PATH, secret), "side:main", cwd=work)

    issue.refresh_from_db()
    assert issue.state == "closed"
    assert issue.state_reason == f"commit:{refs_of(repository)['refs/heads/main']}"


def test_an_attempt_closes_nothing(git, work, attempt, issue):
    git.commit(work, "Fixes #1")
    git.must("push", "--quiet", git.url(PATH, attempt[1]), "HEAD:agent/issue-1", cwd=work)

    issue.refresh_from_db()
    assert issue.state == "open"
