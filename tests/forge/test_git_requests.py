"""Requests that are not quite what git sends: every form of body, other addresses, broken ones, and ones that are too large."""

from __future__ import annotations

import gzip
import http.client
import io
import os

import pytest
import requests

from forge.smart_http.bodies import MOST_MEMBERS, PIECE, BodyBroken, BodyTooLarge, RequestBody
from tests.forge.conftest import refs_of
from tests.forge.pushes import PATH, RECEIVE, basic, line, push_body

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


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


@pytest.mark.parametrize("content", [b"", b"x"])
def test_it_unpacks_no_more_members_than_a_program_makes(content):
    environ = {"HTTP_CONTENT_ENCODING": "gzip"}

    def unpacked(members):
        packed = gzip.compress(content) * members
        body = RequestBody(
            environ | {"wsgi.input": io.BytesIO(packed), "CONTENT_LENGTH": str(len(packed))}, 2**24
        )
        return b"".join(iter(body.read, b""))

    assert unpacked(MOST_MEMBERS) == content * MOST_MEMBERS
    with pytest.raises(BodyBroken):
        unpacked(MOST_MEMBERS + 1)


def test_a_chunked_body_that_is_too_large_is_refused(small_server, work, secret, repository):
    small_server.commit(work, "large", "blob", os.urandom(1_200_000).hex())

    done = small_server("push", small_server.url(PATH, secret), "main:large", cwd=work)

    assert done.returncode != 0
    assert "refs/heads/large" not in refs_of(repository)
