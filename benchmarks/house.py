"""The installation that is measured: real processes on a database that is made for it and dropped afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import django
import psycopg
from psycopg import sql

from tests.faults.installation import Installation, Owner
from tests.localbox.server import LocalboxServer
from tests.postgres import ensure_test_cluster, release_test_cluster


@contextmanager
def house(
    *, settings: dict[str, str] | None = None, localbox: dict[str, str] | None = None
) -> Iterator[Installation]:
    """An installation without parts yet. This process is part of it too: Django is set up on its database."""
    server = ensure_test_cluster()
    database = replace(server, dbname=f"bench_{os.getpid()}")
    admin = psycopg.connect(**replace(server, dbname="postgres").parameters(), autocommit=True)
    admin.execute(sql.SQL("create database {}").format(sql.Identifier(database.dbname)))
    limits = {"max_active_boxes": "2000", "log_level": "warning"} | (localbox or {})
    try:
        with (
            LocalboxServer(settings=limits) as provider,
            Installation(database, provider, settings or {}) as made,
        ):
            made.migrate()
            os.environ |= made.environment() | {"LOG_LEVEL": "WARNING"}
            django.setup()
            try:
                yield made
            except BaseException:
                for name in made.parts:
                    say(f"--- {name}\n{made.log(name)[-3000:]}")
                raise
    finally:
        from django.db import connections

        connections.close_all()
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(database.dbname)))
        admin.close()
        release_test_cluster()


def owners(number: int) -> list[Owner]:
    """New users with one box each that is up."""
    from tests.faults.prepare import prepared

    return [Owner(str(owner["token"]), list(owner["boxes"])) for owner in prepared(number)]  # type: ignore[call-overload]


def say(text: str) -> None:
    """Progress, where it cannot disturb the result."""
    print(text, file=sys.stderr, flush=True)
