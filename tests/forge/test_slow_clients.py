"""Clients of Git that send or take next to nothing hold no thread for long, and those without a credential few at once."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import requests

from forge import git as forge_git
from forge.models import Repository
from forge.smart_http import bodies
from forge.smart_http.bodies import PIECE, RequestBody
from forge.smart_http.crowd import Crowd, Crowded
from forge.states import Visibility
from tests.forge.pushes import PATH, basic
from tests.forge.server import WebServer
from tests.waiting import eventually

STALL = {"FORGE_STALL_SECONDS": "1", "FORGE_ANONYMOUS_REQUESTS": "4"}
FETCH = f"POST /{PATH}.git/git-upload-pack HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-git-upload-pack-request\r\n"


@pytest.fixture
def server(storage: Path, tmp_path: Path, transactional_db: None) -> Iterator[WebServer]:
    with WebServer(storage, tmp_path, STALL) as made:
        yield made


@pytest.fixture
def public(repository: Repository) -> Repository:
    repository.visibility = Visibility.PUBLIC
    repository.save(update_fields=["visibility"])
    return repository


def refs(server: WebServer, headers: dict[str, str] | None = None) -> requests.Response:
    address = f"{server.url}/{PATH}.git/info/refs?service=git-upload-pack"
    return requests.get(address, headers=headers, timeout=60)


def is_ended(client: socket.socket) -> bool:
    """Whether the server is done with a client that goes on sending a byte now and then."""
    try:
        client.send(b"0")
        client.settimeout(0.1)
        return client.recv(65536) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.django_db(transaction=True)
def test_a_request_that_drips_is_ended_and_holds_up_only_those_of_its_kind(
    server: WebServer, public: Repository, secret: str
) -> None:
    refused: list[requests.Response] = []
    with ExitStack() as open_ones:
        drippers: list[socket.socket] = []

        def is_held_up() -> bool:
            """By one more that drips: the one before may have been ended meanwhile."""
            drippers.append(open_ones.enter_context(socket.create_connection(("127.0.0.1", server.port))))
            drippers[-1].sendall(f"{FETCH}Content-Length: 100000\r\n\r\n0".encode())
            refused.append(refs(server))
            return refused[-1].status_code == 503

        eventually(is_held_up)
        assert refused[-1].headers["Retry-After"] == "10"
        assert refs(server, basic(secret)).status_code == 200

        eventually(lambda: any(is_ended(client) for client in drippers) and not server.gits())
    eventually(lambda: refs(server).status_code == 200)


@pytest.mark.django_db(transaction=True)
def test_who_takes_nothing_of_the_answer_is_left(server: WebServer, public: Repository) -> None:
    path = forge_git.path_of(public.storage_key)
    (path / "large").write_bytes(os.urandom(16 * 2**20))  # more than the kernel keeps for a client
    blob = forge_git.run(path, "hash-object", "-w", "large").strip()
    forge_git.run(path, "update-ref", "refs/tags/large", blob)
    want = f"0032want {blob}\n00000009done\n"

    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(f"{FETCH}Content-Length: {len(want)}\r\n\r\n{want}".encode())
        assert client.recv(9) == b"HTTP/1.1 "  # it is being answered, so there is a Git

        eventually(lambda: not server.gits())

    eventually(lambda: refs(server).status_code == 200)


@pytest.mark.parametrize(
    ("client_seconds", "git_seconds", "is_too_slow"), [(0, 100, False), (11, 0, False), (21, 0, True)]
)
def test_it_is_the_client_who_is_too_slow_and_not_git(
    monkeypatch: pytest.MonkeyPatch, client_seconds: float, git_seconds: float, is_too_slow: bool
) -> None:
    """64 KiB that come at once or late, of which Git then takes its time to read; ten seconds are for each, and for the next."""
    now = [0.0]

    class Client(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            now[0] += client_seconds
            return super().read(size)

    monkeypatch.setattr(bodies.time, "monotonic", lambda: now[0])
    body = RequestBody({"wsgi.input": Client(bytes(2 * PIECE)), "CONTENT_LENGTH": str(2 * PIECE)}, 2**20)

    body.read()
    now[0] += git_seconds

    assert body.is_slower_than(10) is is_too_slow


def fill(crowd: Crowd, most: int, *addresses: str) -> list[Callable[[], None]]:
    inside = []
    for address in addresses:
        with suppress(Crowded):
            inside.append(crowd.enter(address, most))
    return inside


def test_one_address_has_a_quarter_of_the_places_and_all_of_them_no_more_than_there_are() -> None:
    assert len(fill(Crowd(), 8, *["a"] * 9)) == 2
    assert len(fill(Crowd(), 8, *"abcdefghi")) == 8
    assert len(fill(Crowd(), 1, "a", "a", "b")) == 1


def test_a_place_is_left_once() -> None:
    crowd = Crowd()
    first, second = fill(crowd, 8, "a", "a")

    first()
    first()

    assert len(fill(crowd, 8, "a", "a")) == 1
    second()
    assert len(fill(crowd, 8, "a", "a")) == 1
