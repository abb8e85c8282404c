"""A database that has been migrated, of which every session's test database is a copy.

To migrate takes ten seconds of a processor, for each worker of each session; to copy takes a tenth of one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from base.embedded_postgres import Connection
from base.locks import key_of
from tests.postgres import CHECKOUT

PREFIX = "migrated_"
LOCK = "tests' migrated database"
# What decides how migrations leave a database: they import from `base`, from models and from the roles of staff.
DECIDES = (
    *("requirements.txt", "base/**/*.py", "openagents_site/settings.py", "openagents_site/staff/*.py"),
    *("**/migrations/*.py", "**/models.py", "**/models/*.py"),
)


def migrated_database(server: Connection) -> str:
    """Its name. The first to need it makes it, while others wait; one of older migrations is dropped then."""
    name = PREFIX + digest()
    with psycopg.connect(**server.parameters(), autocommit=True) as link:
        link.execute("select pg_advisory_lock(%s)", [key_of(LOCK)])
        kept = [
            row[0]
            for row in link.execute("select datname from pg_database where datname ~ %s", [f"^{PREFIX}"])
        ]
        if name not in kept:
            for old in kept:
                link.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(old)))
            _make(link, name)
    return name


def digest(checkout: Path = CHECKOUT) -> str:
    """Of everything that decides; another one means other migrations, or other code that they use."""
    found = hashlib.sha256()
    for file in sorted({file for pattern in DECIDES for file in checkout.glob(pattern)}):
        if not file.relative_to(checkout).parts[0].startswith("."):
            found.update(f"{file.relative_to(checkout)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _make(link: psycopg.Connection, name: str) -> None:
    """Under another name until it is whole."""
    partial, original = f"{PREFIX}partly", connection.settings_dict["NAME"]
    link.execute(sql.SQL("create database {}").format(sql.Identifier(partial)))
    connection.close()
    connection.settings_dict["NAME"] = partial
    try:
        call_command("migrate", verbosity=0, interactive=False)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = original
    link.execute(
        sql.SQL("alter database {} rename to {}").format(sql.Identifier(partial), sql.Identifier(name))
    )
