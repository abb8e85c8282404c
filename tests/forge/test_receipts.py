"""Receipts: every change is noticed, and a process that dies in the middle of a push loses none."""

from __future__ import annotations

import time

import pytest
from django.core.management import CommandError, call_command

from forge import git as forge_git
from forge import pushes, receipts
from forge.models import Push, PushIntent
from tests.forge.conftest import refs_of, rows
from tests.forge.server import Git, WebServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]
PATH = "owner/project"
MAIN = "refs/heads/main"


@pytest.fixture
def work(git, repository, token_of, owner):
    folder = git.new()
    for number in range(3):
        git.must("push", "--quiet", git.url(PATH, token_of(owner)), "main", cwd=folder)
        git.commit(folder, f"more {number}")
    return folder


def problems(repository) -> list[str]:
    return [one.problem for one in receipts.problems(repository, refs_of(repository))]


def test_what_was_pushed_is_in_order(repository, work, capsys):
    call_command("verify_receipts")

    assert "owner/project: 3 receipts, all in order" in capsys.readouterr().out
    assert [push.sequence for push in Push.objects.order_by("sequence")] == [0, 1, 2]


TAMPERED = {
    "another principal": ("principal = 'user:0' where sequence = 1", "does not say what was written"),
    "another ref": ("refs = '{\"refs/heads/main\": {\"old\": null, \"new\": null}}' where sequence = 0", "does not say what was written"),
    "another time": ("recorded_at = recorded_at - interval '1 s' where sequence = 2", "does not say what was written"),
    "another link": ("link = decode(repeat('11', 32), 'hex') where sequence = 1", "is not linked to the receipt before it"),
    "a receipt less": ("sequence = 7 where sequence = 2", "receipt 2 is missing"),
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERED)
def test_what_was_changed_behind_our_back_is_found(repository, work, how, capsys):
    change, problem = TAMPERED[how]
    rows("alter table forge_pushes disable trigger user")
    try:
        rows(f"update forge_pushes set {change}")
    finally:
        rows("alter table forge_pushes enable trigger user")

    with pytest.raises(SystemExit) as ended:
        call_command("verify_receipts", "owner/project")

    assert ended.value.code == 1
    assert problem in capsys.readouterr().out


def test_a_ref_that_moved_by_itself_is_found(repository, work, capsys):
    path = forge_git.path_of(repository.storage_key)
    forge_git.run(path, "update-ref", "refs/heads/stray", refs_of(repository)[MAIN])

    with pytest.raises(SystemExit):
        call_command("verify_receipts", "--json")

    assert '"refs/heads/stray is ' in capsys.readouterr().out


def test_a_repository_that_is_not_there_is_said():
    with pytest.raises(CommandError, match="no repository") as refused:
        call_command("verify_receipts", "owner/nothing")

    assert refused.value.returncode == 3


@pytest.fixture
def dying(git, work, storage, tmp_path, token_of, owner):
    """`dying(point)` pushes `main` to a server that dies there; returns what the client met."""

    def push(point: str):
        folder = tmp_path / point
        folder.mkdir()
        server = WebServer(storage, folder, {"FAULT_POINTS": f"{point}=kill"}).start()
        try:
            other = Git(git.folder, server)
            return other("push", other.url(PATH, token_of(owner)), "main", cwd=work)
        finally:
            server.stop()

    return push


@pytest.mark.parametrize("point", ["forge.asked", "forge.allowed"])
def test_a_server_that_dies_before_it_said_yes_moves_nothing(dying, repository, point):
    before = refs_of(repository)

    done = dying(point)

    time_for_git_to_end(repository)
    assert done.returncode != 0
    assert refs_of(repository) == before
    pushes.settle_left_behind(repository.pk)
    assert Push.objects.count() == 3
    assert problems(repository) == []
    assert not PushIntent.objects.exists()


def test_a_server_that_dies_after_refs_have_moved_leaves_the_receipt_to_the_next(
    dying, repository, git, work, token_of, owner
):
    before = refs_of(repository)[MAIN]
    # A client may send the push again by itself, to the worker that took the dead one's place: that is a next one too.
    done = dying("forge.moved")
    moved = refs_of(repository)[MAIN]
    assert done.returncode != 0
    assert moved != before

    git.commit(work, "the next")
    git.must("push", "--quiet", git.url(PATH, token_of(owner)), "main", cwd=work)

    recovered, newest = Push.objects.order_by("sequence")[3:]
    assert recovered.recovered
    assert recovered.refs == {MAIN: {"old": before, "new": moved}}
    assert (newest.recovered, newest.refs[MAIN]["old"]) == (False, moved)
    assert problems(repository) == []


def test_the_scheduled_task_writes_it_too(dying, repository):
    dying("forge.moved")
    assert pushes.settle_all_left_behind() == 0  # it may still be at work
    rows("update forge_push_intents set started_at = started_at - interval '5 minutes'")

    call_command("expire_assignments")

    assert Push.objects.count() == 4
    assert problems(repository) == []


def test_where_the_receipt_cannot_be_written_the_refs_are_put_back(git, work, repository, token_of, owner):
    before = refs_of(repository)
    rows("alter table forge_pushes add constraint no_more check (sequence < 3)")
    try:
        done = git("push", git.url(PATH, token_of(owner)), "main", "main:new", ":nothing", cwd=work)
        pushed = git("push", git.url(PATH, token_of(owner)), "main", "main:new", cwd=work)
    finally:
        rows("alter table forge_pushes drop constraint no_more")

    assert done.returncode != 0
    assert "503" in pushed.stderr
    assert refs_of(repository) == before
    assert problems(repository) == []
    git.must("push", "--quiet", git.url(PATH, token_of(owner)), "main", cwd=work)


def time_for_git_to_end(repository) -> None:
    """The git that the dead server had started ends by itself: its hook hears nothing more."""
    path = str(forge_git.path_of(repository.storage_key))
    import psutil

    deadline = time.monotonic() + 120
    while any(path in " ".join(_command(p)) for p in psutil.process_iter()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _command(process) -> list[str]:
    import psutil

    try:
        return process.cmdline()
    except psutil.Error:
        return []
