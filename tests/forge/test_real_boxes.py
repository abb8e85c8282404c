"""An attempt in a real box against a real server: cloned, mended, pushed, and the credential gone with it."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from base import pump
from base.clock import database_now
from boxes.client import client
from boxes.errors import Refused
from boxes.models import Box
from conversations.services import ensure_conversation
from forge import assignments
from forge import git as forge_git
from forge.credentials import is_credential_of
from forge.models import Assignment, Push, Repository
from forge.services import create_issue
from openagents_site.registry import drivers
from runs.models import Run
from runs.services import cancel, log_text
from tests.forge.conftest import refs_of, rows
from tests.forge.server import Git
from tests.localbox.server import LocalboxServer
from tests.waiting import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]

BRANCH = "refs/heads/agent/issue-1"


@pytest.fixture(scope="session")
def localbox() -> Iterator[LocalboxServer]:
    with LocalboxServer() as server:
        yield server


@pytest.fixture
def real_box(localbox: LocalboxServer, settings: Any, owner) -> Iterator[Box]:
    """A box that really exists, in the owner's conversation."""
    settings.BOX_API = {
        "base_url": localbox.base_url, "api_key": localbox.key, "retry_delay_ms": 0, "run_poll_interval_ms": 200
    }  # fmt: skip
    created = client().create(str(uuid.uuid4()), ttl_seconds=3600)
    eventually(lambda: client().get(created.id).is_up)
    yield Box.objects.create(
        conversation=ensure_conversation(owner), box_id=created.id, state="ready", setup_status="done"
    )
    with contextlib.suppress(Refused):
        client().stop(created.id, force=True)


@pytest.fixture
def filled(git: Git, repository: Repository, issue, token_of, owner) -> Repository:
    """The repository with a program on `main`."""
    work = git.new()
    git.commit(work, "the program", "program", "echo helo\n")
    git.must("push", "--quiet", git.url("owner/project", token_of(owner)), "main", cwd=work)
    return repository


@pytest.fixture
def attempt(owner, filled, issue, real_box) -> Callable[..., Assignment]:
    def make(command: str, **changes: Any) -> Assignment:
        keywords = {"requesting_user": owner, "repository_id": filled.pk, "issue_number": issue.number, "box_id": real_box.box_id}  # fmt: skip
        return assignments.create(command=command, **keywords | changes)[0]

    return make


def until_ended(assignment: Assignment) -> Assignment:
    """The attempt once everything that drives it has brought it to its end."""

    def ended() -> bool:
        pump.run_once(drivers())
        return Assignment.objects.get(pk=assignment.pk).is_terminal

    eventually(ended, seconds=90)
    return Assignment.objects.get(pk=assignment.pk)


def output_of(assignment: Assignment) -> str:
    run = Run.objects.get(idempotency_key=f"assignment-{assignment.pk}")
    eventually(lambda: pump.run_once(drivers()) and Run.objects.get(pk=run.pk).is_terminal)
    return "".join(log_text(Run.objects.get(pk=run.pk)))


def test_a_command_just_works_in_the_repository_and_pushes(attempt, filled):
    command = (
        "sed -i 's/helo/hello/' program && git commit --quiet -am \"Fixes #$OPENAGENTS_ISSUE\" && git push"
    )

    ended = until_ended(attempt(command))

    head = refs_of(filled)[BRANCH]
    assert (ended.state, ended.failure_reason) == ("completed", None), output_of(ended)
    assert (ended.terminal_branch, ended.terminal_commit) == ("agent/issue-1", head)
    path = forge_git.path_of(filled.storage_key)
    assert forge_git.show_file(path, head, "program") == "echo hello\n"
    [receipt] = Push.objects.filter(principal=f"assignment:{ended.pk}")
    assert receipt.refs == {BRANCH: {"old": None, "new": head}}
    assert assignments.credential(ended).revoked_at == ended.finished_at


def test_the_next_attempt_goes_on_from_the_branch_of_the_one_before(attempt, filled):
    until_ended(attempt("echo one > one && git add one && git commit --quiet -m one && git push"))

    ended = until_ended(
        attempt("test -f one && echo two > two && git add two && git commit --quiet -m two && git push")
    )

    assert ended.state == "completed", output_of(ended)
    assert (
        len(
            forge_git.commits_between(forge_git.path_of(filled.storage_key), None, refs_of(filled)[BRANCH], 9)
        )
        == 4
    )


NOSY = """
git remote -v; cat .git/config; git config -l --show-origin; env
echo fixed > program && git commit --quiet -am fixed
GIT_TRACE=1 GIT_CURL_VERBOSE=1 GIT_TRACE_CURL=1 git push
ps -ef || true
"""


def test_no_command_shows_the_credential_by_accident(attempt):
    assignment = attempt(NOSY)
    ended = until_ended(assignment)
    said = output_of(ended)

    assert ended.state == "completed", said
    assert "git-receive-pack" in said
    assert "oa_assignment_" not in said
    assert "Authorization: Basic <redacted>" in said or "authorization: Basic <redacted>" in said


PRINTS = """
cat "$OPENAGENTS_RUN_DIRECTORY/forge-credential"
sed 's/.*oa_assignment_//; s/@.*//' "$OPENAGENTS_RUN_DIRECTORY/forge-credential"
sed 's/.*[.]\\([^.@]*\\)@.*/secret part: \\1 end/' "$OPENAGENTS_RUN_DIRECTORY/forge-credential"
"""


def test_a_credential_that_is_printed_is_struck_out(attempt):
    """As a whole, without its beginning, and its secret part alone, which nobody could know by its form."""
    ended = until_ended(attempt(PRINTS))
    said = output_of(ended)

    assert "secret part: [REDACTED" in said, said
    words = re.findall(r"[A-Za-z0-9_-]{40,100}", said)
    assert not any(is_credential_of(ended.pk, word) for word in words)


def test_its_files_are_gone_at_every_end(attempt, real_box, filled, owner):
    look = "ls $HOME/.openagents/box-runs/users/*/*/forge-credential $HOME/.openagents/box-runs/users/*/*/gitconfig"
    until_ended(attempt("true"))
    until_ended(attempt("exit 3"))
    killed = attempt("sleep 100")
    eventually(lambda: pump.run_once(drivers()) and Run.objects.get(pk=killed.run_id).state == "running")
    cancel(Run.objects.get(pk=killed.run_id))
    ended = until_ended(killed)

    result = client().command(real_box.box_id, f"{look} 2>/dev/null | wc -l", 20)

    assert (ended.state, ended.failure_reason) == ("cancelled", "run_cancelled")
    assert result.stdout.strip() == "0"


def test_it_cannot_push_anything_else(attempt, filled):
    before = refs_of(filled)

    ended = until_ended(
        attempt("echo x > x && git add x && git commit --quiet -m x && git push origin HEAD:main")
    )

    assert (ended.state, ended.failure_reason) == ("failed", "run_failed")
    assert refs_of(filled) == before


def test_a_long_attempt_pushes_right_before_its_deadline(attempt, filled):
    """Nothing of the credential ends before the attempt does."""
    soon = database_now() + timedelta(seconds=25)
    command = "sleep 12 && echo x > x && git add x && git commit --quiet -m x && git push"

    ended = until_ended(attempt(command, deadline_at=soon))

    assert ended.state == "completed", output_of(ended)
    assert BRANCH in refs_of(filled)


def test_at_its_deadline_the_run_is_ended_and_the_credential_is_dead(attempt, filled):
    assignment = attempt("sleep 120; git push", deadline_at=database_now() + timedelta(seconds=3))

    ended = until_ended(assignment)

    assert (ended.state, ended.failure_reason) == ("failed", "assignment_expired")
    eventually(
        lambda: pump.run_once(drivers()) and Run.objects.get(pk=assignment.run_id).state == "cancelled"
    )
    assert rows("select count(*) from forge_assignments where next_step_at is not null") == [(0,)]


def test_a_command_with_its_own_interpreter_works_in_the_repository(attempt):
    script = "#!/usr/bin/env perl\nuse strict; open(my $f, '<', 'program') or die; print 'says: ', <$f>;\n"

    ended = until_ended(attempt(script))

    assert ended.state == "completed", output_of(ended)
    assert "says: echo helo" in output_of(ended)


def test_what_an_agent_is_to_do_is_there(attempt):
    ended = until_ended(
        attempt(
            'echo "$OPENAGENTS_OBJECTIVE"; echo "$OPENAGENTS_BRANCH"; git log --format=%an%ae -0; git config user.name'
        )
    )
    said = output_of(ended)

    assert "Issue #1: Mend the program" in said
    assert "It prints the wrong word." in said
    assert "attempt at #1" in said


def test_an_empty_repository_gets_its_first_commit(owner, make_repository, real_box, web):
    empty = make_repository(owner, "empty")
    create_issue(empty, title="Begin")
    assignment, _ = assignments.create(
        requesting_user=owner, repository_id=empty.pk, issue_number=1, box_id=real_box.box_id,
        command="echo x > x && git add x && git commit --quiet -m x && git push",
    )  # fmt: skip

    ended = until_ended(assignment)

    assert ended.state == "completed", output_of(ended)
    assert list(refs_of(empty)) == [BRANCH]


def test_an_attempt_that_is_over_before_its_run_is_sent_sends_nothing(attempt):
    assignment = attempt("touch $HOME/it-ran")
    assignments.finish(assignment, "failed", reason="machine_revoked")
    rows("update forge_assignments set next_step_at = null")

    eventually(lambda: pump.run_once(drivers()) and Run.objects.get(pk=assignment.run_id).is_terminal)

    run = Run.objects.get(pk=assignment.run_id)
    assert (run.state, run.failure_reason) == ("failed", "credential_unavailable")


def test_a_tag_of_the_same_name_is_not_the_branch(attempt, filled, git, token_of, owner):
    main = refs_of(filled)["refs/heads/main"]
    path = forge_git.path_of(filled.storage_key)
    forge_git.run(path, "update-ref", "refs/tags/agent/issue-1", main)

    ended = until_ended(attempt("echo x > x && git add x && git commit --quiet -m x && git push"))

    assert ended.state == "completed", output_of(ended)
    assert refs_of(filled)[BRANCH] == ended.terminal_commit
