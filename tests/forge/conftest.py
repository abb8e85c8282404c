"""Repositories on disk and in rows, attempts at their issues, and a web server with stock git before it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from accounts.services import create_token
from boxes.models import Box
from conversations.services import ensure_conversation
from forge import assignments
from forge.models import Assignment, Issue, Repository
from forge.services import create_issue, create_repository
from tests.fakes.fixtures import fake, provider  # noqa: F401 - pytest finds fixtures by name
from tests.forge.pushes import PATH
from tests.forge.server import Git, WebServer


@pytest.fixture(scope="session")
def storage() -> Iterator[Path]:
    """One folder for every repository of the session; each has a key of its own."""
    folder = Path(tempfile.mkdtemp(prefix="forge-storage-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def forge(storage: Path, settings: Any) -> Callable[..., None]:
    """`forge(push_bytes=1)` changes settings of the family for this test."""
    settings.FORGE = {"storage_root": str(storage)}

    def change(**values: Any) -> None:
        settings.FORGE = settings.FORGE | values

    return change


@pytest.fixture(scope="session")
def web_server(storage: Path, django_db_setup: None) -> Iterator[WebServer]:
    folder = Path(tempfile.mkdtemp(prefix="forge-web-"))
    with WebServer(storage, folder) as server:
        yield server
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def web(web_server: WebServer, transactional_db: None, settings: Any) -> WebServer:
    """The server, which sees only what is committed."""
    settings.PUBLIC_BASE_URL = web_server.url
    return web_server


@pytest.fixture
def git(web: WebServer, tmp_path: Path) -> Git:
    folder = tmp_path / "git"
    folder.mkdir()
    return Git(folder, web)


@pytest.fixture
def make_repository(db: None) -> Callable[..., Repository]:
    def make(owner: User, name: str | None = None, **values: Any) -> Repository:
        return create_repository(owner, name or f"r-{uuid.uuid4().hex[:8]}", **values)

    return make


@pytest.fixture
def repository(owner: User, make_repository: Callable[..., Repository]) -> Repository:
    return make_repository(owner, "project")


@pytest.fixture
def issue(repository: Repository) -> Issue:
    return create_issue(repository, title="Mend the program", body="It prints the wrong word.")


@pytest.fixture
def make_box(db: None) -> Callable[..., Box]:
    """A row of a box that is up, in the user's conversation; the provider knows nothing of it."""

    def make(owner: User) -> Box:
        return Box.objects.create(
            conversation=ensure_conversation(owner),
            box_id=f"bx_{uuid.uuid4().hex[:8]}",
            label=uuid.uuid4().hex[:8],
            state="ready",
            setup_status="done",
        )

    return make


@pytest.fixture
def box(owner: User, make_box: Callable[..., Box]) -> Box:
    return make_box(owner)


@pytest.fixture
def token_of(db: None) -> Callable[..., str]:
    """`token_of(user, *scopes)` is the plaintext of a new token; for Git by default."""

    def make(user: User, *scopes: str) -> str:
        return create_token(user, scopes=scopes or ["read", "forge:write"])[1]

    return make


@pytest.fixture
def no_provider(settings: Any) -> None:
    """Nothing listens where the provider should be: what starts on a box stays admitted."""
    settings.BOX_API = settings.BOX_API | {"base_url": "http://127.0.0.1:9", "retry_delay_ms": 0}


def refs_of(repository: Repository) -> dict[str, str]:
    from forge import git as forge_git

    return forge_git.refs(forge_git.path_of(repository.storage_key))


def rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def make_overdue(*assignments: Assignment) -> None:
    """Their deadline has passed a second ago, as no clock and no trigger would let it."""
    if connection.in_atomic_block:
        rows("set constraints all immediate")
    tables = {
        "forge_assignments": ("id", "deadline_at"),
        "forge_assignment_credentials": ("assignment_id", "expires_at"),
    }
    for table, (key, moment) in tables.items():
        rows(f"alter table {table} disable trigger user")
        rows(
            f"update {table} set {moment} = clock_timestamp() - interval '1 second' where {key} = any(%s)",
            [one.pk for one in assignments],
        )
        rows(f"alter table {table} enable trigger user")


@pytest.fixture
def create(owner, repository, issue, box):
    """`create(branch="x")` makes an attempt at the issue on the box, but for what is said."""

    def make(**changes):
        keywords = {
            "requesting_user": owner, "repository_id": repository.pk, "issue_number": issue.number, "box_id": box.box_id
        }  # fmt: skip
        return assignments.create(**keywords | changes)

    return make


@pytest.fixture
def secret(owner, token_of) -> str:
    return token_of(owner)


@pytest.fixture
def work(git: Git, repository: Repository, secret: str) -> Path:
    """A working copy whose `main` is pushed."""
    folder = git.new()
    git.must("push", "--quiet", git.url(PATH, secret), "main", cwd=folder)
    return folder


@pytest.fixture
def small_server(storage, tmp_path, transactional_db, settings):
    """A server that takes pushes of a mebibyte at most, and waits ten seconds for them at most."""
    folder = tmp_path / "small"
    folder.mkdir()
    limits = {"FORGE_PUSH_BYTES": str(2**20), "FORGE_PUSH_SECONDS": "10"}
    with WebServer(storage, folder, limits) as server:
        yield Git(tmp_path, server)


@pytest.fixture
def attempt(owner, repository, issue, box, no_provider):
    return assignments.create(
        requesting_user=owner, repository_id=repository.pk, issue_number=issue.number, box_id=box.pk
    )


@pytest.fixture
def wanted(repository: Repository, issue: Issue, box: Box) -> dict[str, object]:
    """What is posted for an attempt on the box."""
    return {
        "repository": str(repository.pk),
        "issue_number": issue.number,
        "box": box.label,
        "command": "make",
    }
