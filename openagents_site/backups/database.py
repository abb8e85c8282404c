"""The database's part: PostgreSQL's own programs, of a version that can read the server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connection

from base.embedded_postgres.binaries import installed
from base.embedded_postgres.errors import EmbeddedPostgresError
from openagents_site.backups import BackupFailed

LIBPQ = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD", "NAME": "PGDATABASE"}

LIBPQ_OPTIONS = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "requirepeer": "PGREQUIREPEER",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}


def server_version() -> int:
    """The server's major version."""
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('server_version_num')::int / 10000")
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def program(name: str) -> str:
    """The path of `pg_dump` or `pg_restore`, of at least the server's major version.

    That of the packages, else the one on PATH. Raises BackupFailed if neither is there or new enough.
    """
    wanted = server_version()
    found = [path for path in (_packaged(name), shutil.which(name)) if path is not None]
    for path in found:
        if _version_of(path) >= wanted:
            return path
    seen = ", ".join(f"{path} is of version {_version_of(path)}" for path in found) or "there is none"
    raise BackupFailed(detail=f"{name} {wanted} or newer is needed for this server; {seen}.")


def dump(to: Path) -> None:
    """Write a consistent copy of the whole database, in PostgreSQL's custom format. Writers are not kept waiting."""
    with to.open("wb") as file:
        _run([program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges"], file)


def load(file: Path, *, replace: bool) -> None:
    """Read a copy into the database, all of it or nothing. With `replace` the schema is dropped first, in the same transaction."""
    with tempfile.NamedTemporaryFile(suffix=".sql") as script:
        subprocess_arguments = ["--no-owner", "--no-privileges", f"--file={script.name}", str(file)]
        _run([program("pg_restore"), *subprocess_arguments], None)
        _feed(Path(script.name), replace)


def is_empty() -> bool:
    """Whether the database holds no table."""
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_tables where schemaname = 'public'")
        row = cursor.fetchone()
    return row is not None and row[0] == 0


def counts() -> dict[str, int]:
    """How many rows each table holds."""
    with connection.cursor() as cursor:
        cursor.execute("select tablename from pg_tables where schemaname = 'public' order by 1")
        tables = [row[0] for row in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f"select count(*) from {connection.ops.quote_name(table)}")  # noqa: S608 - a name of the catalogue
            row = cursor.fetchone()
            found[table] = int(row[0]) if row else 0
    return found


def _feed(script: Path, replace: bool) -> None:
    psql = str(Path(program("pg_restore")).with_name("psql"))
    before = ["--command=drop schema public cascade; create schema public"] if replace else []
    _run([psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", *before, f"--file={script}"], None)  # fmt: skip


def _run(command: list[str], output: IO[bytes] | None) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = next(
            (line for line in said if "ERROR" in line or "error:" in line),
            said[-1] if said else "no reason given",
        )
        raise BackupFailed(detail=f"{Path(command[0]).name} failed: {why[:300]}")


def _environment() -> dict[str, str]:
    """How to reach the database, by environment: a password in the arguments would be in the process list."""
    database = settings.DATABASES["default"] | {"NAME": connection.settings_dict["NAME"]}
    found = {variable: str(database[name]) for name, variable in LIBPQ.items() if database.get(name)}
    options = database.get("OPTIONS", {})
    found |= {variable: str(options[name]) for name, variable in LIBPQ_OPTIONS.items() if options.get(name)}
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_MESSAGES": "C"} | found


def _packaged(name: str) -> str | None:
    try:
        return installed().program(name)
    except EmbeddedPostgresError:
        return None


def _version_of(path: str) -> int:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, env={}, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r"(\d+)(\.\d+)*\s*(\(.*\))?\s*$", said)
    return int(found.group(1)) if found else 0
