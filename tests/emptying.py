"""The database as migrations leave it, after a test that committed.

Django truncates every table for that and makes content types and permissions anew: half a second of a processor for each
such test, nearly all of it for tables that were empty; and what migrations themselves had put in is gone. Here rows that are
there are deleted, and what migrations put in stays, or is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection, transaction
from psycopg import sql

FURNISHED = (
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
)  # by migrations
LARGEST_BYTES = 4 << 20  # deleted rows stay in the file, and later tests would have to read past them


class Emptying:
    """Made before any test, of a database in which nothing but what migrations put in has a row."""

    def __init__(self) -> None:
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        self._others = sorted(set(names) - set(FURNISHED))
        with _past_all_guards() as cursor:
            self._furniture = _furniture(cursor)

    def after_a_test(self) -> None:
        """Back to that, past what guards the ledger's rows and whatever refers to what."""
        with _past_all_guards() as cursor:
            self._remove_rows(cursor)
            if _furniture(cursor) != self._furniture:
                self._put_furniture_back(cursor)

    def _remove_rows(self, cursor: psycopg.Cursor) -> None:
        filled = _filled(cursor, self._others)
        if max(filled.values(), default=0) > LARGEST_BYTES:
            names = sql.SQL(", ").join(map(sql.Identifier, self._others))
            cursor.execute(sql.SQL("truncate {}").format(names))
        else:
            _delete_all(cursor, filled)

    def _put_furniture_back(self, cursor: psycopg.Cursor) -> None:
        _delete_all(cursor, FURNISHED)
        for table, rows in self._furniture.items():
            with cursor.copy(sql.SQL("copy {} from stdin").format(sql.Identifier(table))) as copy:
                copy.write(rows)


@contextmanager
def _past_all_guards() -> Iterator[psycopg.Cursor]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
        yield cursor.cursor  # psycopg's own, which can copy


def _filled(cursor: psycopg.Cursor, tables: Iterable[str]) -> dict[str, int]:
    """The tables that have a row, each with its size in bytes."""
    question = sql.SQL("(select {name}, pg_table_size({name}) from {table} limit 1)")
    parts = [question.format(name=sql.Literal(table), table=sql.Identifier(table)) for table in tables]
    return dict(cursor.execute(sql.SQL(" union all ").join(parts)).fetchall())


def _delete_all(cursor: psycopg.Cursor, tables: Iterable[str]) -> None:
    for table in tables:
        cursor.execute(sql.SQL("delete from {}").format(sql.Identifier(table)))


def _furniture(cursor: psycopg.Cursor) -> dict[str, bytes]:
    """The rows of each table as PostgreSQL writes them out, in an order that does not change."""
    found = {}
    for table in FURNISHED:
        rows = sql.SQL("copy (select * from {} order by 1) to stdout").format(sql.Identifier(table))
        with cursor.copy(rows) as copy:
            found[table] = b"".join(map(bytes, copy))
    return found
