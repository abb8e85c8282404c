"""Who may fetch and push what: stock git against the running server, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from accounts.services import upsert_github_user
from forge import assignments
from forge.models import Push
from forge.services import create_issue, grant_machine, set_member, update_repository
from tests.forge.conftest import refs_of
from tests.forge.machines import paired_machine

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

BRANCH = "agent/issue-1"
ROLES = ("owner", "maintainer", "contributor", "viewer")
CALLERS = (
    "nobody", "wrong secret", *ROLES, "stranger", "token without forge:write", "token without read or forge:write",
    "machine read", "machine write", "machine without grant", "revoked machine", "assignment", "assignment elsewhere",
    "finished assignment",
)  # fmt: skip
WRITERS = {"owner", "maintainer", "contributor", "machine write"}
READERS = WRITERS | {"viewer", "machine read", "assignment", "token without forge:write"}


@dataclass
class Scene:
    """A repository with `main` and `other`, and the secret of whoever calls."""

    path: str
    work: Path
    secret: str | None


@pytest.fixture
def scene(
    git, owner, stranger, repository, issue, box, make_box, make_repository, token_of, no_provider, request
):
    """A scene for the caller that is named, in a repository of the visibility that is named."""
    caller, visibility = request.param
    update_repository(repository, visibility=visibility)
    work = git.new()
    git.must("branch", "other", cwd=work)
    git.must("push", "--quiet", git.url("owner/project", token_of(owner)), "main", "other", cwd=work)
    git.must("checkout", "--quiet", "-b", BRANCH, cwd=work)
    git.commit(work, "mend")
    secret = secret_of(caller, owner, stranger, repository, issue, box, make_box, make_repository, token_of)
    return Scene("owner/project", work, secret)


def secret_of(
    caller, owner, stranger, repository, issue, box, make_box, make_repository, token_of
) -> str | None:
    if caller == "nobody":
        return None
    if caller == "wrong secret":
        return "oa_pat_" + "0" * 64
    if caller in ROLES:
        user = owner if caller == "owner" else upsert_github_user(github_id=77, github_login=caller)
        set_member(repository, user, caller)
        return token_of(user)
    if caller == "stranger":
        return token_of(stranger)
    if caller.startswith("token without"):
        return token_of(owner, "read" if caller.endswith("without forge:write") else "box:control")
    if "machine" in caller:
        machine, token = paired_machine(owner)
        if caller != "machine without grant":
            grant_machine(repository, machine, ["read", "write"] if caller != "machine read" else ["read"])
        if caller == "machine write":
            grant_machine(repository, machine, ["write", "read"])
        if caller == "revoked machine":
            from work.machines import revoke_machine

            revoke_machine(machine)
        return token
    return assignment_secret(caller, owner, repository, issue, box, make_repository)


def assignment_secret(caller, owner, repository, issue, box, make_repository) -> str:
    if caller == "assignment elsewhere":
        repository = make_repository(owner, "elsewhere")
        issue = create_issue(repository, title="elsewhere")
    assignment, secret = assignments.create(
        requesting_user=owner,
        repository_id=repository.pk,
        issue_number=issue.number,
        box_id=box.pk,
        branch=BRANCH,
    )
    assert secret
    if caller == "finished assignment":
        assignments.finish(assignment, "completed")
    return secret


def expected_read(caller: str, visibility: str) -> str:
    if caller in {"wrong secret", "revoked machine", "finished assignment"}:
        return "401"
    if caller in READERS:
        return "ok"
    if caller == "token without read or forge:write":
        return "403"
    if caller == "nobody":
        return "ok" if visibility == "public" else "401"
    if caller == "stranger":
        return "ok" if visibility == "public" else "404"
    return "404"  # an assignment elsewhere and a machine without grant read no other, not even a public one


def expected_write(caller: str) -> str:
    if caller in {"nobody", "wrong secret", "revoked machine", "finished assignment"}:
        return "401"
    if caller in WRITERS or caller == "assignment":
        return "ok"
    if caller in {"viewer", "machine read"} or caller.startswith("token without"):
        return "403"
    return "404"


def said(done) -> str:
    """How stock git tells what it met."""
    if done.returncode == 0:
        return "ok"
    if "could not read Username" in done.stderr or "Authentication failed" in done.stderr:
        return "401"
    for status in ("403", "404"):
        if f"error: {status}" in done.stderr or (status == "404" and "not found" in done.stderr):
            return status
    return done.stderr


EVERYBODY = [(caller, visibility) for visibility in ("public", "private") for caller in CALLERS]


@pytest.mark.parametrize("scene", EVERYBODY, indirect=True, ids="-".join)
def test_it_lets_only_these_fetch_and_push(git, scene, request, repository):
    caller, visibility = request.node.callspec.params["scene"]
    url, shown = git.url(scene.path), git.showing(scene.secret)

    fetched = git(*shown, "clone", "--quiet", url, "copy")
    pushed = git(*shown, "push", url, BRANCH, cwd=scene.work)

    assert said(fetched) == expected_read(caller, visibility)
    assert said(pushed) == expected_write(caller)
    assert (f"refs/heads/{BRANCH}" in refs_of(repository)) == (expected_write(caller) == "ok")
    assert Push.objects.filter(repository=repository).count() == 1 + (expected_write(caller) == "ok")


ATTEMPT = [("assignment", "private")]
PUSHES = {
    "the branch": (["{b}"], True),
    "main": (["{b}:main"], False),
    "another branch": (["{b}:agent/issue-2"], False),
    "other by force": (["+{b}:other"], False),
    "a tag": (["refs/tags/v1"], False),
    "the branch and another": (["{b}", "{b}:agent/issue-2"], False),
    "another and the branch": (["{b}:agent/issue-2", "{b}"], False),
    "the branch and a tag": (["{b}", "refs/tags/v1"], False),
    "the branch and main": (["{b}", "{b}:main"], False),
    "a delete of other": ([":other"], False),
    "everything": (["--all"], False),
    "a mirror": (["--mirror"], False),
    "the branch with its tags": (["--follow-tags", "{b}"], False),
    "the branch and another, atomic": (["--atomic", "{b}", "{b}:agent/issue-2"], False),
    "many refs": ([f"{{b}}:agent/issue-{number}" for number in range(2, 60)], False),
    "a look-alike below it": (["{b}:agent/issue-1/more"], False),
    "a look-alike beside it": (["{b}:agent/issue-10"], False),
    "a ref that is no branch": (["{b}:refs/pull/1/head"], False),
}


@pytest.mark.parametrize("scene", ATTEMPT, indirect=True, ids="-".join)
@pytest.mark.parametrize("what", PUSHES)
def test_a_credential_of_an_attempt_pushes_its_branch_and_nothing_else(git, scene, repository, what):
    git.must("tag", "-a", "v1", "-m", "one", cwd=scene.work)
    git.must("branch", "more", cwd=scene.work)
    refs, may = PUSHES[what]
    before = refs_of(repository)

    done = git(
        "push", git.url(scene.path, scene.secret), *[ref.format(b=BRANCH) for ref in refs], cwd=scene.work
    )

    assert (done.returncode == 0) is may, done.stderr
    moved = {ref for ref, value in refs_of(repository).items() if before.get(ref) != value}
    assert moved == ({f"refs/heads/{BRANCH}"} if may else set())


@pytest.mark.parametrize("scene", ATTEMPT, indirect=True, ids="-".join)
def test_it_refuses_to_rewrite_or_delete_the_branch_of_an_attempt_and_says_so(git, scene, repository):
    url = git.url(scene.path, scene.secret)
    git.must("push", "--quiet", url, BRANCH, cwd=scene.work)
    kept = refs_of(repository)
    git.must("commit", "--quiet", "--amend", "-m", "another", cwd=scene.work)

    rewritten = git("push", "--force", url, BRANCH, cwd=scene.work)
    deleted = git("push", url, f":{BRANCH}", cwd=scene.work)

    assert "may not be rewritten" in rewritten.stderr
    assert "may not be deleted" in deleted.stderr
    assert refs_of(repository) == kept


@pytest.mark.parametrize("scene", [("contributor", "private")], indirect=True, ids="-".join)
def test_it_lets_nobody_delete_or_rewrite_a_branch_that_is_protected_by_name(git, scene, repository):
    update_repository(repository, protected_branches=["other"])
    url, kept = git.url(scene.path, scene.secret), refs_of(repository)
    git.must("checkout", "--quiet", "--orphan", "new", cwd=scene.work)
    git.commit(scene.work, "from nothing")

    rewritten = git("push", "--force", url, "new:other", cwd=scene.work)
    deleted = git("push", url, ":other", cwd=scene.work)

    assert "protected and may not be rewritten" in rewritten.stderr
    assert "protected and may not be deleted" in deleted.stderr
    assert refs_of(repository) == kept


@pytest.mark.parametrize("scene", ATTEMPT, indirect=True, ids="-".join)
def test_it_reads_what_is_protected_again_when_refs_are_to_move(git, scene, repository):
    update_repository(repository, protected_branches=[BRANCH])

    done = git("push", git.url(scene.path, scene.secret), BRANCH, cwd=scene.work)

    assert "is protected" in done.stderr
    assert f"refs/heads/{BRANCH}" not in refs_of(repository)
