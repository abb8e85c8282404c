"""What stock git sends and gets, and what happens while it is on its way."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
import requests

from forge import assignments
from forge import git as forge_git
from forge.models import Push
from forge.services import set_member
from tests.forge.conftest import make_overdue, refs_of, rows
from tests.forge.pushes import PATH, RECEIVE, basic, git_bytes, line, push_body
from tests.forge.server import Git, WebServer
from tests.waiting import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
BRANCH = "refs/heads/agent/issue-1"
UPLOAD = "application/x-git-upload-pack-request"


def test_it_speaks_version_2_and_0(git, work, secret):
    for version in ("2", "0"):
        done = git(
            "-c", f"protocol.version={version}", "ls-remote", git.url(PATH, secret), GIT_TRACE_PACKET="1"
        )
        assert done.returncode == 0
        assert ("version 2" in done.stderr) == (version == "2")
        assert "refs/heads/main" in done.stdout


def test_it_gives_shallow_and_partial_clones_and_deepens_them(git, work, secret):
    for number in range(5):
        git.commit(work, f"more {number}")
    git.must("push", "--quiet", git.url(PATH, secret), "main", cwd=work)

    git.must("clone", "--quiet", "--depth", "2", git.url(PATH, secret), "shallow")
    git.must("clone", "--quiet", "--filter=blob:none", git.url(PATH, secret), "partial")

    shallow = git.folder / "shallow"
    assert git.must("rev-list", "--count", "HEAD", cwd=shallow).strip() == "2"
    git.must("fetch", "--quiet", "--unshallow", cwd=shallow)
    assert git.must("rev-list", "--count", "HEAD", cwd=shallow).strip() == "6"
    assert (git.folder / "partial" / "README").read_text() == "more 4\n"


def test_it_takes_a_push_from_a_shallow_clone(git, work, secret, repository):
    git.commit(work, "two")
    git.must("push", "--quiet", git.url(PATH, secret), "main", cwd=work)
    git.must("clone", "--quiet", "--depth", "1", git.url(PATH, secret), "shallow")
    head = git.commit(git.folder / "shallow", "from the shallows")

    git.must("push", "--quiet", "origin", "main", cwd=git.folder / "shallow")

    assert refs_of(repository)["refs/heads/main"] == head


def test_a_fetch_with_many_haves_comes_packed(git, work, secret):
    """Beyond a kilobyte git packs its request with gzip. It names the newest commits first, so the common one is the oldest."""
    git.must("clone", "--quiet", git.url(PATH, secret), "copy")
    copy = git.folder / "copy"
    for number in range(60):
        date = f"2099-01-01T00:00:{number:02} +0000"
        git.must("commit", "--quiet", "--allow-empty", "-m", date, cwd=copy, GIT_COMMITTER_DATE=date)
    git.commit(work, "new")
    git.must("push", "--quiet", git.url(PATH, secret), "main", cwd=work)

    done = git("-c", "protocol.version=0", "fetch", "origin", cwd=copy, GIT_CURL_VERBOSE="1")

    assert done.returncode == 0
    assert "Content-Encoding: gzip" in done.stderr


def test_a_large_push_comes_chunked_and_is_there_afterwards(git, work, secret, repository):
    head = git.commit(work, "large", "blob", os.urandom(1_500_000).hex())

    done = git("push", git.url(PATH, secret), "main", cwd=work, GIT_CURL_VERBOSE="1")

    assert done.returncode == 0, done.stderr
    assert "Transfer-Encoding: chunked" in done.stderr
    assert refs_of(repository)["refs/heads/main"] == head


SLOW = {
    "in the list of refs": (50, b"408"),
    "in the pack": (100_000, b"503"),
}


@pytest.mark.parametrize("where", SLOW)
def test_a_push_that_takes_too_long_is_ended(small_server, work, secret, repository, where):
    length, status = SLOW[where]
    beginning = large_pack(small_server, work)[:length]
    with socket.create_connection(("127.0.0.1", small_server.server.port), timeout=60) as link:
        begin_push(link, secret, beginning, of=10**6)

        answer = link.recv(4096)

    assert answer.split()[1] == status
    eventually(lambda: not small_server.server.gits())


def begin_push(link: socket.socket, secret: str, body: bytes, *, of: int = 10_000) -> None:
    """Send the head of a push of `of` bytes, and its beginning."""
    headers = basic(secret) | {"Host": "127.0.0.1", "Content-Type": RECEIVE, "Content-Length": str(of)}
    headers["Connection"] = "close"
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    link.sendall(f"POST /{PATH}.git/git-receive-pack HTTP/1.1\r\n{head}\r\n".encode() + body)


def test_a_client_that_goes_away_leaves_nothing_behind(git, work, secret, repository):
    before = refs_of(repository)
    with socket.create_connection(("127.0.0.1", git.server.port), timeout=60) as link:
        begin_push(link, secret, large_pack(git, work)[:100_000], of=10**6)
        eventually(lambda: git.server.gits())

    eventually(lambda: not git.server.gits())
    assert refs_of(repository) == before


def test_a_clone_that_is_left_leaves_no_process(git, work, secret):
    # More than the sockets between them hold.
    git.commit(work, "large", "blob", os.urandom(16_000_000).hex())
    git.must("push", "--quiet", git.url(PATH, secret), "main", cwd=work)
    head = git.must("rev-parse", "main", cwd=work).strip()
    want = f"0032want {head}\n00000009done\n".encode()

    with requests.post(
        f"{git.url(PATH)}/git-upload-pack", data=want, headers=basic(secret) | {"Content-Type": UPLOAD}, stream=True,
        timeout=30,
    ) as answer:  # fmt: skip
        assert answer.status_code == 200
        pieces = answer.iter_content(1000)  # the connection is closed once nobody holds them
        assert next(pieces)
        assert git.server.gits()

    eventually(lambda: not git.server.gits())


def large_pack(git: Git, work: Path) -> bytes:
    """A push that is long enough for Git to begin with it before all of it is here."""
    old = git.must("rev-parse", "HEAD", cwd=work).strip()
    new = git.commit(work, "too late", "blob", os.urandom(150_000).hex())
    return push_body(work, git, old, new, BRANCH).replace(old.encode(), b"0" * 40, 1)


class SlowPush:
    """A push whose last bytes are held back until it is told to send them."""

    def __init__(self, port: int, secret: str, body: bytes) -> None:
        self.rest = body[-10:]
        self.link = socket.create_connection(("127.0.0.1", port), timeout=60)
        begin_push(self.link, secret, body[:-10], of=len(body))

    def finish(self) -> bytes:
        self.link.sendall(self.rest)
        answer = b""
        while piece := self.link.recv(65536):
            answer += piece
        self.link.close()
        return answer


ENDINGS = {
    "finished": lambda assignment: assignments.finish(assignment, "completed"),
    "expired": lambda assignment: make_overdue(assignment),
    "cancelled": lambda assignment: assignments.cancel(assignment),
    "renewed": lambda assignment: __import__("forge.credentials", fromlist=["mint"]).mint(assignment.pk),
    "protected": lambda assignment: rows(
        "update forge_repositories set protected_branches = '{agent/issue-1}'"
    ),
    "gone": lambda assignment: rows("update forge_repositories set lifecycle_state = 'failed'"),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_what_ends_during_an_upload_is_refused_and_moves_nothing(git, work, attempt, repository, how):
    assignment, plaintext = attempt
    slow = SlowPush(git.server.port, plaintext, large_pack(git, work))
    eventually(lambda: git.server.gits())

    ENDINGS[how](assignment)
    answer = slow.finish()

    assert b"pre-receive hook declined" in answer
    assert BRANCH not in refs_of(repository)
    assert Push.objects.filter(principal=f"assignment:{assignment.pk}").count() == 0


def test_what_ends_between_the_list_of_refs_and_the_push_is_refused(git, work, attempt, repository):
    assignment, plaintext = attempt
    address = f"{git.url(PATH)}/info/refs?service=git-receive-pack"
    assert requests.get(address, headers=basic(plaintext), timeout=30).status_code == 200

    assignments.finish(assignment, "completed")

    headers = basic(plaintext) | {"Content-Type": RECEIVE}
    answer = requests.post(
        f"{git.url(PATH)}/git-receive-pack", data=line(BRANCH), headers=headers, timeout=30
    )
    assert answer.status_code == 401


def test_a_user_who_is_put_out_during_an_upload_is_refused(git, work, repository, stranger, token_of):
    set_member(repository, stranger, "contributor")
    old, new = (
        refs_of(repository)["refs/heads/main"],
        git.commit(work, "too late", "blob", os.urandom(150_000).hex()),
    )
    slow = SlowPush(git.server.port, token_of(stranger), push_body(work, git, old, new))
    eventually(lambda: git.server.gits())

    set_member(repository, stranger, "viewer")

    assert b"may not push any more" in slow.finish()
    assert refs_of(repository)["refs/heads/main"] == old


def test_who_ends_an_attempt_waits_while_its_refs_move(git, work, attempt, repository, storage, tmp_path):
    """After the end nothing moves; what moved was before it, and the attempt knows its commit."""
    assignment, plaintext = attempt
    folder = tmp_path / "slow"
    folder.mkdir()
    with WebServer(storage, folder, {"FAULT_POINTS": "forge.moved=sleep:1.5"}) as server:
        slow_git = Git(git.folder, server)
        head = git.commit(work, "in time")
        pushing = threading.Thread(
            target=lambda: slow_git("push", slow_git.url(PATH, plaintext), "HEAD:agent/issue-1", cwd=work)
        )
        pushing.start()
        eventually(lambda: refs_of(repository).get(BRANCH) == head)

        ended = assignments.finish(assignment, "completed")

        assert (ended.terminal_branch, ended.terminal_commit) == ("agent/issue-1", head)
        pushing.join()


def test_pushes_to_one_branch_at_once_are_one_after_the_other(git, work, secret, repository):
    copies = []
    for number in range(6):
        git.must("clone", "--quiet", git.url(PATH, secret), f"copy-{number}")
        git.commit(git.folder / f"copy-{number}", f"{number}", f"file-{number}")
        copies.append(git.folder / f"copy-{number}")
    results: dict[Path, int] = {}
    threads = [
        threading.Thread(target=lambda copy=copy: results.update({copy: git("push", "origin", "main", cwd=copy).returncode}))
        for copy in copies
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results.values()) == [0, 1, 1, 1, 1, 1]
    assert Push.objects.filter(repository=repository).count() == 2


def test_nothing_of_git_on_the_server_comes_from_its_surroundings(
    git, work, secret, repository, storage, tmp_path
):
    """Neither a global configuration nor variables nor hooks beside ours have a say."""
    marks = tmp_path / "ran"
    path = forge_git.path_of(repository.storage_key)
    hook = path / "hooks"
    hook.mkdir(exist_ok=True)
    for name in ("pre-receive", "post-receive", "update", "reference-transaction"):
        (hook / name).write_text(f"#!/bin/sh\necho {name} >> {marks}\nexit 1\n")
        (hook / name).chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hook}\n[receive]\n\tdenyCurrentBranch = refuse\n"
    )
    surroundings = {
        "HOME": str(home),
        "GIT_DIR": "/nonexistent",
        "GIT_CONFIG_PARAMETERS": "'core.hooksPath=/x'",
    }
    folder = tmp_path / "server"
    folder.mkdir()

    with WebServer(storage, folder, surroundings) as server:
        other = Git(git.folder, server)
        head = git.commit(work, "unmoved")
        other.must("push", "--quiet", other.url(PATH, secret), "main", cwd=work)

    assert refs_of(repository)["refs/heads/main"] == head
    assert not marks.exists()


def test_a_broken_object_is_not_taken(git, work, secret, repository):
    """A tree with a .git inside would be carried out by whoever clones it."""
    blob = git_bytes(git, work, "hash-object", "-w", "--stdin", input_text="x").decode().strip()
    tree = (
        git_bytes(git, work, "mktree", "--missing", input_text=f"100644 blob {blob}\t.gitmodules\n")
        .decode()
        .strip()
    )
    raw = bytes.fromhex(blob)
    import subprocess

    bad = subprocess.run(
        ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"], cwd=work, env=git.environment(),
        input=b"100644 .git\0" + raw, capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    commit = git.must("commit-tree", bad, "-m", "bad", cwd=work).strip()
    assert tree

    done = git("push", git.url(PATH, secret), f"{commit}:refs/heads/bad", cwd=work)

    assert "hasDotgit" in done.stderr
    assert "refs/heads/bad" not in refs_of(repository)


@pytest.mark.timeout(400)
def test_200_megabytes_are_pushed_and_cloned_with_flat_memory(git, work, secret, repository, tmp_path):
    as_it_is = ["-c", "core.bigFileThreshold=1m", "-c", "core.compression=0"]
    for number in range(4):
        with (work / f"blob-{number}").open("wb") as file:
            for _ in range(50):
                file.write(os.urandom(2**20))
    git.must(*as_it_is, "add", ".", cwd=work)
    git.must("commit", "--quiet", "-m", "big", cwd=work)
    server, peak = git.server, [git.server.memory()]
    before, done = peak[0], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peak.append(server.memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        git.must(*as_it_is, "push", "--quiet", git.url(PATH, secret), "main", cwd=work)
        git.must("clone", "--quiet", git.url(PATH, secret), "copy")
    finally:
        done.set()
        watcher.join()

    assert max(peak) - before < 24 * 2**20
    assert (git.folder / "copy" / "blob-3").stat().st_size == 50 * 2**20
