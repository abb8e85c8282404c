"""A copy is made and put back for real, in another database of the same server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from base.embedded_postgres import Connection
from tests.postgres import ensure_test_cluster

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
]  # many whole processes, each of which loads everything
Manage = Callable[..., subprocess.CompletedProcess[str]]
ROWS = """
from boxes.models import Box
from conversations.services import ensure_conversation
from forge.services import create_repository
from accounts.services import upsert_github_user
user = upsert_github_user(github_id=7, github_login="kept")
box = Box.objects.create(conversation=ensure_conversation(user), box_id="bx_kept", state="ready")
Box.objects.update(setup_status="done")
print(create_repository(user, name="kept").storage_key)
"""


@pytest.fixture
def make_database() -> Iterator[Callable[[], Connection]]:
    server = ensure_test_cluster()
    made: list[str] = []

    def make() -> Connection:
        name = f"copy_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(**server.parameters(), autocommit=True) as link:
            link.execute(f"create database {name}")
        made.append(name)
        return Connection(server.host, server.user, name, server.port, server.password)

    yield make
    with psycopg.connect(**server.parameters(), autocommit=True) as link:
        for name in made:
            link.execute(f"drop database if exists {name} with (force)")


def manage_on(database: Connection, state: Path) -> Manage:
    def manage(*arguments: str, program: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "DATABASE_URL": database.url(),
            "SECRET_KEY": "only-for-tests-" + "x" * 50,
            "STATE_DIR": str(state),
        }
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            input=program,
        )

    return manage


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(database: Connection) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    with psycopg.connect(**database.parameters(), autocommit=True) as link:
        tables = [
            row[0] for row in link.execute("select tablename from pg_tables where schemaname = 'public'")
        ]
        return {
            table: sorted(row[0] for row in link.execute(f'select t::text from "{table}" t'))
            for table in tables
        }


def guards_of(database: Connection) -> list[tuple[str, ...]]:
    """Every trigger, index and constraint."""
    with psycopg.connect(**database.parameters(), autocommit=True) as link:
        return link.execute(
            "select 'trigger', tgname::text, tgrelid::regclass::text from pg_trigger where not tgisinternal"
            " union all select 'index', indexname::text, tablename::text from pg_indexes where schemaname = 'public'"
            " union all select 'constraint', conname::text, conrelid::regclass::text from pg_constraint where conrelid > 0"
            " order by 1, 2, 3"
        ).fetchall()


def test_a_copy_put_back_is_the_installation_again(make_database: Callable[[], Connection], tmp_path: Path):
    there, here = make_database(), make_database()
    manage = manage_on(there, tmp_path / "there")
    other = manage_on(here, tmp_path / "here")
    copy = tmp_path / "copy"
    ok(manage("migrate", "-v0"))
    key = ok(manage("shell", "-v0", program=ROWS)).strip().splitlines()[-1]

    assert "rows" in ok(manage("backup", str(copy)))
    assert "was restored" in ok(other("restore", str(copy)))

    assert {file.stat().st_mode & 0o077 for file in copy.iterdir()} == {0}
    assert rows_of(here) == rows_of(there)
    assert guards_of(here) == guards_of(there)
    assert (
        (tmp_path / "here" / "repositories" / key[:2] / f"{key}.git" / "HEAD").read_text().startswith("ref: ")
    )
    assert "No migrations to apply" in ok(other("migrate"))

    refused = other("restore", str(copy))
    assert (refused.returncode, refused.stderr.strip()) == (
        1,
        "manage.py: The database is not empty. --replace drops what it holds.",
    )
    ok(other("shell", "-v0", program="from boxes.models import Box; Box.objects.update(state='running')"))
    ok(other("restore", "--replace", str(copy)))
    assert rows_of(here) == rows_of(there)

    (copy / "database.dump").write_bytes((copy / "database.dump").read_bytes()[:-1])
    damaged = other("restore", "--replace", str(copy))
    assert damaged.returncode == 1
    assert "database.dump is missing or damaged" in damaged.stderr
    assert rows_of(here) == rows_of(there)


def test_what_is_no_copy_and_what_is_in_use_is_refused(
    make_database: Callable[[], Connection], tmp_path: Path
):
    manage = manage_on(make_database(), tmp_path / "state")
    used = tmp_path / "used"
    used.mkdir()
    (used / "file").touch()
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "manifest.json").write_text(json.dumps({"format": 99}))

    assert f"{used} is not empty" in manage("backup", str(used)).stderr
    assert "holds no whole copy" in manage("restore", str(used)).stderr
    assert "another release" in manage("restore", str(newer)).stderr
