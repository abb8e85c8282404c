"""A database that is made for one measurement and dropped afterwards; this process is set up on it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import django
import psycopg
from psycopg import sql

from tests.postgres import ensure_test_cluster, release_test_cluster


@contextmanager
def throwaway_database() -> Iterator[None]:
    """Django is set up on an empty database with all its tables. What the surroundings configure is not looked at."""
    server = ensure_test_cluster()
    database = replace(server, dbname=f"bench_{os.getpid()}")
    admin = psycopg.connect(**replace(server, dbname="postgres").parameters(), autocommit=True)
    admin.execute(sql.SQL("create database {}").format(sql.Identifier(database.dbname)))
    for name in [name for name in os.environ if name.startswith(("BOX_", "RUN_", "WORK_"))]:
        del os.environ[name]
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
        "DATABASE_URL": database.url(),
        "SECRET_KEY": secrets.token_urlsafe(48),
        "LOG_LEVEL": "WARNING",
    }
    try:
        django.setup()
        _migrate()
        yield
    finally:
        from django.db import connections

        connections.close_all()
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(database.dbname)))
        admin.close()
        release_test_cluster()


@contextmanager
def without_indexes(table: str) -> Iterator[None]:
    """Rows are written without the table's indexes, which are made again afterwards: that is faster than keeping them."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_INDEXES, [table])
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f"drop index {name}")
        yield
        for _, definition in indexes:
            cursor.execute(definition)


_INDEXES = """
    select indexname, indexdef from pg_indexes
    where tablename = %s and indexname not in (select conname from pg_constraint)
"""


def _migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
