"""Repositories by hand."""

from __future__ import annotations

import json
import os

import pytest
from django.core.management import CommandError, call_command

from forge import assignments
from forge.models import Assignment, Push, Repository
from forge.services import create_issue
from tests.forge.conftest import make_overdue, refs_of

pytestmark = pytest.mark.django_db


def test_create_repo_makes_one_and_says_where(owner, capsys):
    call_command("forge", "create-repo", "owner/tool", "--visibility", "public", "--default-branch", "trunk")

    made = Repository.objects.get()
    assert (made.name, made.visibility, made.default_branch, made.is_ready) == (
        "tool",
        "public",
        "trunk",
        True,
    )
    assert capsys.readouterr().out.strip() == "http://testserver/owner/tool.git"


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (("create-repo", "nobody/x"), "no user", 3), (("create-repo", "x"), "OWNER/NAME", 1),
        (("create-repo", "owner/X"), "invalid_repository_name", 1), (("issues", "owner/none"), "no repository", 3),
        (("import", "owner/new", "/nonexistent"), "repository_not_made", 1),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_said(owner, arguments, said, status):
    with pytest.raises(CommandError, match=said) as refused:
        call_command("forge", *arguments)

    assert refused.value.returncode == status


def test_import_brings_every_branch_and_tag_with_a_receipt(owner, tmp_path, capsys):
    source = tmp_path / "source"
    git_in(tmp_path, "init", "--quiet", "--initial-branch=main", "source")
    git_in(source, "commit", "--quiet", "--allow-empty", "-m", "one")
    git_in(source, "branch", "side")
    git_in(source, "tag", "-a", "v1", "-m", "one")

    call_command("forge", "import", "owner/brought", str(source))

    repository = Repository.objects.get()
    assert sorted(refs_of(repository)) == ["refs/heads/main", "refs/heads/side", "refs/tags/v1"]
    assert "3 refs" in capsys.readouterr().out
    assert Push.objects.get().principal == "operator:import"
    call_command("forge", "import", "owner/brought", str(source))
    assert Push.objects.count() == 1
    call_command("verify_receipts")


def test_issues_are_listed_with_their_attempts(owner, repository, box, no_provider, capsys):
    create_issue(repository, title="Mend \x1b[31mit")
    create_issue(repository, title="[/fix] an [red]unclosed[/] " + "title " * 20 + "ends")
    create_issue(repository, title="Leave it")
    assignments.create(requesting_user=owner, repository_id=repository.pk, issue_number=1, box_id=box.pk)
    capsys.readouterr()

    call_command("forge", "issues", "owner/project")
    shown = capsys.readouterr().out
    call_command("forge", "issues", "owner/project", "--json", "--state", "open", "--limit", "1")
    one = capsys.readouterr().out
    call_command("forge", "issues", "owner/project", "--limit", "9" * 30)

    assert "Leave it" in shown
    assert "[/fix] an [red]unclosed[/] " + "title " * 20 + "ends\n" in shown
    assert "running" in shown
    assert "\x1b[31m" not in shown
    assert json.loads(one) == {
        "number": 3,
        "state": "open",
        "title": "Leave it",
        "attempts": [],
    }
    assert capsys.readouterr().out == shown


def test_expire_assignments_ends_what_is_overdue(owner, repository, issue, box, no_provider, capsys):
    made, _ = assignments.create(
        requesting_user=owner, repository_id=repository.pk, issue_number=1, box_id=box.pk
    )
    make_overdue(made)

    call_command("expire_assignments")

    assert "1 expired, 0 caught up, 0 pushes recovered" in capsys.readouterr().out
    assert Assignment.objects.get().failure_reason == "assignment_expired"


def git_in(folder, *arguments: str) -> None:
    import os
    import subprocess

    who = {
        f"GIT_{role}_{what}": "t@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)} | who,
        check=True,
    )


def test_an_import_of_a_name_that_no_receipt_can_hold_is_refused_and_moves_nothing(owner, tmp_path, capsys):
    source = tmp_path / "source"
    git_in(tmp_path, "init", "--quiet", "--initial-branch=main", "source")
    git_in(source, "commit", "--quiet", "--allow-empty", "-m", "one")
    git_in(source, "branch", os.fsdecode(b"caf\xe9"))

    with pytest.raises(CommandError, match="not UTF-8"):
        call_command("forge", "import", "owner/old", str(source))

    call_command("verify_receipts")
    assert "owner/old: 0 receipts, all in order" in capsys.readouterr().out
