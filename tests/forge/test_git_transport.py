"""What stock git sends and gets: every form of body, large and broken ones, and what happens while one is on its way."""

from __future__ import annotations

import gzip
import http.client
import io
import os
import socket
import threading
import time
from base64 import b64encode
from pathlib import Path

import pytest
import requests

from forge import assignments
from forge import git as forge_git
from forge.models import Push, PushIntent, Repository
from forge.services import set_member
from forge.smart_http.bodies import PIECE, BodyTooLarge, RequestBody
from tests.forge.conftest import make_overdue, refs_of, rows
from tests.forge.server import Git, WebServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

PATH = "owner/project"
BRANCH = "refs/heads/agent/issue-1"
RECEIVE = "application/x-git-receive-pack-request"
UPLOAD = "application/x-git-upload-pack-request"


@pytest.fixture
def secret(owner, token_of) -> str:
    return token_of(owner)


@pytest.fixture
def work(git: Git, repository: Repository, secret: str) -> Path:
    """A working copy whose `main` is pushed."""
    folder = git.new()
    git.must("push", "--quiet", git.url(PATH, secret), "main", cwd=folder)
    return folder


def basic(secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"x:{secret}".encode()).decode()}


def wait_for(met, seconds: float = 30.0):
    deadline = time.monotonic() + seconds
    while not (answer := met()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return answer


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
    """Beyond a kilobyte git packs its request with gzip."""
    git.must("clone", "--quiet", git.url(PATH, secret), "copy")
    copy = git.folder / "copy"
    for number in range(60):
        git.must("commit", "--quiet", "--allow-empty", "-m", f"{number}", cwd=copy)
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


def push_body(work: Path, git: Git, old: str, new: str, ref: str = "refs/heads/main") -> bytes:
    """What git would send to move one ref."""
    line = f"{old} {new} {ref}\0 report-status side-band-64k\n".encode()
    pack = git_bytes(git, work, "pack-objects", "--revs", "--stdout", "-q", input_text=f"{new}\n^{old}\n")
    return f"{len(line) + 4:04x}".encode() + line + b"0000" + pack


def git_bytes(git: Git, work: Path, *arguments: str, input_text: str) -> bytes:
    import subprocess

    return subprocess.run(
        ["git", *arguments],
        cwd=work,
        env=git.environment(),
        input=input_text.encode(),
        capture_output=True,
        check=True,
    ).stdout


FORMS = ("plain", "gzip", "gzip in two members", "chunked", "chunked gzip")


@pytest.mark.parametrize("form", FORMS)
def test_it_reads_a_body_in_every_form(git, work, secret, repository, form):
    old, new = refs_of(repository)["refs/heads/main"], git.commit(work, "next")
    body = push_body(work, git, old, new)
    headers = basic(secret) | {"Content-Type": RECEIVE}
    if "gzip" in form:
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body[:70]) + gzip.compress(body[70:]) if "two" in form else gzip.compress(body)
    pieces = iter([body[:50], body[50:]]) if "chunked" in form else body

    answer = requests.post(f"{git.url(PATH)}/git-receive-pack", data=pieces, headers=headers, timeout=30)

    assert answer.status_code == 200
    assert b"unpack ok" in answer.content
    assert answer.headers["Content-Type"] == "application/x-git-receive-pack-result"
    assert "no-cache" in answer.headers["Cache-Control"]
    assert refs_of(repository)["refs/heads/main"] == new


ODD = {
    "no content type": (RECEIVE, {"Content-Type": ""}, b"0000", 415),
    "another content type": (RECEIVE, {"Content-Type": "text/plain"}, b"0000", 415),
    "another packing": (RECEIVE, {"Content-Encoding": "br"}, b"0000", 415),
    "no packet lines": (RECEIVE, {}, b"hello, is there anybody", 400),
    "a length that is none": (RECEIVE, {}, b"zzzz", 400),
    "a length that is too short": (RECEIVE, {}, b"0003", 400),
    "an end in the middle": (RECEIVE, {}, b"00a0" + b"0" * 20, 400),
    "nothing at all": (RECEIVE, {}, b"", 400),
    "a line that is none": (RECEIVE, {}, b"000chello\n\n\n0000", 400),
    "a ref with a space": (RECEIVE, {}, lambda: line("refs/heads/a b"), 400),
    "a ref that is none": (RECEIVE, {}, lambda: line("HEAD"), 400),
    "two zero ids": (RECEIVE, {}, lambda: line("refs/heads/x", "0" * 40, "0" * 40), 400),
    "broken gzip": (RECEIVE, {"Content-Encoding": "gzip"}, gzip.compress(b"0000" * 100)[:-10], 400),
    "no gzip": (RECEIVE, {"Content-Encoding": "gzip"}, b"0000", 400),
    "a probe": (RECEIVE, {}, b"0000", 200),
}


def line(ref: str, old: str = "0" * 40, new: str = "1" * 40) -> bytes:
    text = f"{old} {new} {ref}\0 report-status\n".encode()
    return f"{len(text) + 4:04x}".encode() + text + b"0000"


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_push_is_refused_and_moves_nothing(git, work, secret, repository, odd):
    content_type, headers, body, status = ODD[odd]
    before = refs_of(repository)

    answer = requests.post(
        f"{git.url(PATH)}/git-receive-pack",
        data=body() if callable(body) else body,
        headers=basic(secret) | {"Content-Type": content_type} | headers,
        timeout=30,
    )

    assert answer.status_code == status
    assert refs_of(repository) == before


ADDRESSES = [
    ("GET", "/info/refs", 400), ("GET", "/info/refs?service=git-upload-archive", 400),
    ("GET", "/info/refs?service=git-upload-pack", 200), ("POST", "/info/refs?service=git-upload-pack", 404),
    ("GET", "/git-upload-pack", 404), ("GET", "/HEAD", 404), ("GET", "/objects/info/packs", 404),
    ("GET", "/config", 404), ("GET", "/../project.git/info/refs?service=git-upload-pack", 200),
    ("PUT", "/git-receive-pack", 404), ("GET", "", 404),
]  # fmt: skip


@pytest.mark.parametrize(("method", "rest", "status"), ADDRESSES, ids=[f"{m} {r}" for m, r, _ in ADDRESSES])
def test_there_are_three_addresses(git, work, secret, method, rest, status):
    answer = requests.request(method, git.url(PATH) + rest, headers=basic(secret), timeout=30)

    assert answer.status_code == status


@pytest.mark.parametrize("path", ["OWNER/project", "owner/PROJECT", "Owner/Project"])
def test_case_does_not_count(git, work, secret, path):
    assert "refs/heads/main" in git.must("ls-remote", git.url(path, secret))


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !!!", "Basic eA==", "Bearer x", "Basic " + "A" * 5000, "x"]
)
def test_a_header_that_is_none_is_a_wrong_credential(git, work, header):
    address = f"{git.url(PATH)}/info/refs?service=git-upload-pack"

    answer = requests.get(address, headers={"Authorization": header}, timeout=30)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")


def test_a_body_that_says_it_is_too_large_is_refused_at_once(git, work, secret):
    connection = http.client.HTTPConnection("127.0.0.1", git.server.port, timeout=30)
    connection.putrequest("POST", f"/{PATH}.git/git-receive-pack")
    for name, value in (
        basic(secret) | {"Content-Type": RECEIVE, "Content-Length": str(600 * 2**20)}
    ).items():
        connection.putheader(name, value)
    connection.endheaders()

    assert connection.getresponse().status == 413
    connection.close()


@pytest.fixture
def small_server(storage, tmp_path, transactional_db, settings):
    """A server that takes pushes of a mebibyte at most, and waits ten seconds for them at most."""
    folder = tmp_path / "small"
    folder.mkdir()
    limits = {"FORGE_PUSH_BYTES": str(2**20), "FORGE_PUSH_SECONDS": "10"}
    with WebServer(storage, folder, limits) as server:
        yield Git(tmp_path, server)


def test_a_body_that_is_too_large_when_unpacked_is_refused(small_server, work, secret, repository):
    """A few kilobytes of gzip, half a gigabyte unpacked."""
    before = small_server.server.memory()
    bomb = gzip.compress(line("refs/heads/x") + bytes(2**29), 9)
    assert len(bomb) < 2**20
    headers = basic(secret) | {"Content-Type": RECEIVE, "Content-Encoding": "gzip"}

    answer = requests.post(
        f"{small_server.url(PATH)}/git-receive-pack", data=bomb, headers=headers, timeout=60
    )

    assert (
        answer.status_code == 413 or b"unpack ok" not in answer.content
    )  # Git may find first that it is no pack
    assert small_server.server.memory() - before < 32 * 2**20
    assert "refs/heads/x" not in refs_of(repository)


@pytest.mark.parametrize("limit", [2**20, 2**24])
def test_it_unpacks_no_more_than_may_come(limit):
    bomb = gzip.compress(bytes(2**27), 9)
    environ = {
        "wsgi.input": io.BytesIO(bomb),
        "CONTENT_LENGTH": str(len(bomb)),
        "HTTP_CONTENT_ENCODING": "gzip",
    }
    body = RequestBody(environ, limit)

    with pytest.raises(BodyTooLarge):
        list(iter(body.read, b""))

    assert limit < body.received <= limit + PIECE


def test_a_chunked_body_that_is_too_large_is_refused(small_server, work, secret, repository):
    small_server.commit(work, "large", "blob", os.urandom(1_200_000).hex())

    done = small_server("push", small_server.url(PATH, secret), "main:large", cwd=work)

    assert done.returncode != 0
    assert "refs/heads/large" not in refs_of(repository)


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
    wait_for(lambda: not small_server.server.gits())


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
        wait_for(lambda: git.server.gits())

    wait_for(lambda: not git.server.gits())
    assert refs_of(repository) == before


def test_a_clone_that_is_left_leaves_no_process(git, work, secret):
    # More than the sockets between them hold.
    git.commit(work, "large", "blob", os.urandom(64_000_000).hex())
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

    wait_for(lambda: not git.server.gits())


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


@pytest.fixture
def attempt(owner, repository, issue, box, no_provider):
    return assignments.create(
        requesting_user=owner, repository_id=repository.pk, issue_number=issue.number, box_id=box.pk
    )


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
    wait_for(lambda: git.server.gits())

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
    wait_for(lambda: git.server.gits())

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
        wait_for(lambda: refs_of(repository).get(BRANCH) == head)

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
