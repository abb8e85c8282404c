"""What nobody means well with: odd addresses, odd names, and objects that are made to be large."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import shutil
import struct
import threading
import zlib
from base64 import b64encode

import psutil
import pytest
import requests

from forge import closing, pushes, receipts
from forge import git as forge_git
from forge.models import Push, PushIntent
from forge.smart_http import fetching
from forge.smart_http.backend import Backend, Call
from forge.smart_http.bodies import RequestBody
from forge.smart_http.ref_list import RefUpdate
from tests.forge.conftest import refs_of
from tests.forge.server import Git, WebServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
PATH = "owner/project"
ZERO = "0" * 40


@pytest.fixture
def secret(owner, token_of) -> str:
    return token_of(owner)


def status_of(git: Git, path: str, secret: str, method: str = "GET") -> int:
    """The path as it stands: no client of ours makes it nicer."""
    link = http.client.HTTPConnection("127.0.0.1", git.server.port, timeout=60)
    shown = b64encode(f"x:{secret}".encode()).decode()
    link.request(method, path, headers={"Authorization": f"Basic {shown}"})
    answer = link.getresponse()
    answer.read()
    link.close()
    return answer.status


ODD = [
    "/owner/%2e%2e.git/info/refs", "/owner/../project.git/info/refs",
    "/owner/project%00.git/info/refs", "/%00/project.git/info/refs", f"/owner/{'p' * 4000}.git/info/refs",
    "/owner/%F0%9F%99%82.git/info/refs", "/owner/%ff%fe.git/info/refs", "/owner/project.git/info/refs%0a",
    "/owner/project.git//info/refs", "/owner/project.git/info/../info/refs", "/owner/project.git.git/info/refs",
]  # fmt: skip


def test_an_address_that_is_none_is_not_there(git, repository, secret):
    found = {path: status_of(git, f"{path}?service=git-upload-pack", secret) for path in ODD}

    assert set(found.values()) <= {400, 404}, found
    assert status_of(git, "/owner/project.git/info/refs?service=git-upload-pack", secret, "HEAD") == 404


LINE_ENDS = "refs/heads/a\u2028b\u0085c"


def test_a_name_with_what_unicode_calls_a_line_end_is_a_name(git, repository, secret):
    work = git.new()

    git.must("push", "--quiet", git.url(PATH, secret), f"main:{LINE_ENDS}", cwd=work)
    git.must("push", "--quiet", git.url(PATH, secret), "main", f":{LINE_ENDS}", cwd=work)

    made, deleted = Push.objects.filter(repository=repository).order_by("sequence")
    assert list(made.refs) == [LINE_ENDS]
    assert set(deleted.refs) == {LINE_ENDS, "refs/heads/main"}
    assert set(refs_of(repository)) == {"refs/heads/main"}


def test_a_thousand_refs_are_pushed_at_once(git, repository, secret):
    work = git.new()
    head = git.must("rev-parse", "HEAD", cwd=work).strip()
    for number in range(1_000):
        (work / f".git/refs/heads/b-{number}").write_text(f"{head}\n")

    git.must("push", "--quiet", "--all", git.url(PATH, secret), cwd=work)

    [receipt] = Push.objects.filter(repository=repository)
    assert len(receipt.refs) == len(refs_of(repository)) == 1_001


@pytest.mark.parametrize(
    "ref", ["refs/replace/{id}", "refs/heads/x/../y", "refs/heads/x.lock", "refs/import/heads/x"]
)
def test_a_ref_that_is_no_branch_tag_or_note_is_not_made(git, repository, secret, ref):
    work = git.new()
    head = git.must("rev-parse", "HEAD", cwd=work).strip()
    named = f"{ZERO} {head} {ref.format(id=head)}\0 report-status\n".encode()
    pack = git_pack(git, work, head)
    body = f"{len(named) + 4:04x}".encode() + named + b"0000" + pack
    link = http.client.HTTPConnection("127.0.0.1", git.server.port, timeout=60)
    link.request(
        "POST", f"/{PATH}.git/git-receive-pack", body=body,
        headers={
            "Authorization": "Basic " + b64encode(f"x:{secret}".encode()).decode(),
            "Content-Type": "application/x-git-receive-pack-request", "Expect": "100-continue",
        },
    )  # fmt: skip
    answer = link.getresponse().read()
    link.close()

    assert b"ng " in answer or b"declined" in answer
    assert refs_of(repository) == {}
    assert not PushIntent.objects.exists()


def git_pack(git: Git, work, head: str) -> bytes:
    import subprocess

    return subprocess.run(
        ["git", "pack-objects", "--revs", "--stdout", "-q"], cwd=work, env=git.environment(),
        input=f"{head}\n".encode(), capture_output=True, check=True,
    ).stdout  # fmt: skip


@pytest.fixture(scope="module")
def bounded_server(storage, tmp_path_factory, django_db_setup):
    """A server whose Git may take 256 MiB for a push."""
    folder = tmp_path_factory.mktemp("bounded")
    with WebServer(storage, folder, {"FORGE_PUSH_MEMORY_BYTES": str(256 * 2**20)}) as server:
        yield Git(folder, server)


EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def push_of(message: bytes) -> bytes:
    """A push of one commit with this message, as no client of good will makes it."""
    who = b"x <x@localhost> 0 +0000"
    commit = b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (EMPTY_TREE.encode(), who, who, message)
    head = hashlib.sha1(b"commit %d\0" % len(commit) + commit).hexdigest()
    pack = b"PACK" + struct.pack(">II", 2, 2) + packed(1, commit) + packed(2, b"")
    line = f"{ZERO} {head} refs/heads/main\0 report-status\n".encode()
    return f"{len(line) + 4:04x}".encode() + line + b"0000" + pack + hashlib.sha1(pack).digest()


def packed(kind: int, content: bytes) -> bytes:
    size, first = len(content), (kind << 4) | (len(content) & 15)
    size >>= 4
    header = bytearray()
    while size:
        header.append(first | 128)
        first, size = size & 127, size >> 7
    return bytes([*header, first]) + zlib.compress(content, 1)


@pytest.mark.parametrize(("mebibytes", "is_taken"), [(1, True), (400, False)])
def test_an_object_that_is_made_to_be_large_costs_its_push_and_nothing_else(
    bounded_server, transactional_db, repository, secret, mebibytes, is_taken
):
    """400 MiB of one letter come as 2 MiB. Whoever unpacks a commit holds it whole."""
    body = push_of(b"a" * (mebibytes * 2**20))
    shown = "Basic " + b64encode(f"x:{secret}".encode()).decode()

    answer = requests.post(
        f"{bounded_server.url(PATH)}/git-receive-pack", data=body, timeout=120,
        headers={"Authorization": shown, "Content-Type": "application/x-git-receive-pack-request"},
    )  # fmt: skip

    assert len(body) < 3 * 2**20
    assert (b"unpack ok" in answer.content) is is_taken, answer.content
    assert ("refs/heads/main" in refs_of(repository)) is is_taken


@pytest.fixture
def two_commits(repository) -> tuple[str, str]:
    """Two commits on disk; `main` is at the first."""
    path = forge_git.path_of(repository.storage_key)
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    tree = forge_git.run(path, "mktree", input_text="").strip()
    first = forge_git.run(path, *who, "commit-tree", tree, input_text="one").strip()
    second = forge_git.run(
        path, *who, "commit-tree", tree, "-p", first, input_text="x" * 2**22 + " fixes #12"
    )
    forge_git.run(path, "update-ref", "refs/heads/main", first)
    return first, second.strip()


def test_of_endless_messages_only_the_beginning_is_read(repository, two_commits):
    first, second = two_commits
    path = forge_git.path_of(repository.storage_key)

    assert forge_git.commits_between(path, first, second, 200) == []
    assert forge_git.commits_between(path, None, first, 200) == [(first, "one")]
    assert closing.numbers_in("fixes #1") == [1]


def noted(repository, old: str, new: str) -> receipts.Changes:
    about = {"refs/heads/main": {"old": old, "new": new}}
    pushes.note_intent(repository, "user:1", about)
    return about


def test_what_could_not_be_recorded_is_put_back_once(repository, two_commits):
    first, second = two_commits
    about = noted(repository, first, second)
    forge_git.run(forge_git.path_of(repository.storage_key), "update-ref", "refs/heads/main", second)

    assert pushes.undo(repository.pk, about)

    assert refs_of(repository)["refs/heads/main"] == first
    assert pushes.settle_left_behind(repository.pk) is None


def test_what_was_recorded_after_all_is_not_undone(repository, two_commits):
    """The answer of a commit was lost, or somebody else has written the receipt meanwhile."""
    first, second = two_commits
    about = noted(repository, first, second)
    forge_git.run(forge_git.path_of(repository.storage_key), "update-ref", "refs/heads/main", second)
    assert pushes.settle_left_behind(repository.pk)

    assert not pushes.undo(repository.pk, about)

    assert refs_of(repository)["refs/heads/main"] == second


def test_a_push_that_cannot_be_settled_costs_only_itself(repository, two_commits, make_repository, owner):
    first, second = two_commits
    lost = make_repository(owner, "lost")
    for one in (lost, repository):
        noted(one, first, second)
    PushIntent.objects.update(started_at="2020-01-01T00:00:00Z")
    shutil.rmtree(forge_git.path_of(lost.storage_key))

    assert pushes.settle_all_left_behind() == 1

    assert [intent.repository_id for intent in PushIntent.objects.all()] == [lost.pk]


def test_an_update_is_read_from_the_words_of_the_hook():
    from forge.smart_http.exchange import _updates

    said = f"create {ZERO} {'1' * 40} {LINE_ENDS}\n.\n".encode()

    assert _updates(said) == [RefUpdate(LINE_ENDS, None, "1" * 40)]


CALL = Call("git-receive-pack", is_advertisement=False, content_type="application/x-git-receive-pack-request")


def test_nothing_reads_from_a_client_that_is_being_answered(repository):
    """One that sends the rest of its push slowly, though Git has ended: it is heard out, and then no more."""
    stopped = threading.Event()
    pieces = iter([b"this is no push", b""])

    def piece() -> bytes:
        found = next(pieces)
        if not found:
            assert stopped.wait(60)
        return found

    with Backend(repository, CALL, seconds=1) as backend:
        backend.feed(piece, lambda error: None, stopped.set)
        while backend.read():
            continue

    assert stopped.is_set()
    assert backend._feeder is not None
    assert not backend._feeder.is_alive()


@pytest.mark.parametrize("is_begun", [True, False], ids=["begun", "not begun"])
def test_a_clone_that_nobody_reads_to_its_end_leaves_no_git(repository, is_begun):
    path = forge_git.path_of(repository.storage_key)
    (path / "large").write_bytes(os.urandom(4 * 2**20))  # more than a pipe holds
    blob = forge_git.run(path, "hash-object", "-w", "large").strip()
    forge_git.run(path, "update-ref", "refs/tags/large", blob)
    want = f"0032want {blob}\n00000009done\n".encode()
    environ = {"wsgi.input": io.BytesIO(want), "CONTENT_LENGTH": str(len(want))}
    call = Call("git-upload-pack", is_advertisement=False, content_type="x")
    response = fetching.answer(repository, call, RequestBody(environ, 2**20))
    gits = [child for child in psutil.Process().children(recursive=True) if "git" in child.name()]
    if is_begun:
        assert b"NAK" in next(iter(response))
        assert all(git.is_running() for git in gits)

    response.close()

    assert gits
    psutil.wait_procs(gits, timeout=60)
    assert not any(git.is_running() for git in gits)
