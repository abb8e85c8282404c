"""Writing many rows in one statement, without one bad row costing the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

log = structlog.get_logger(__name__)
T = TypeVar("T")


def written(sql: str, rows: Sequence[T], columns: Callable[[T], Sequence[Any]]) -> list[Any]:
    """Execute `sql` once for all rows and return the first column of what it returns.

    `columns` makes one value for each array parameter of `sql`. Where the database refuses the statement, each row is
    written by itself, and those that it refuses are left out and logged. Raises only errors of the connection.
    """
    if not rows:
        return []
    try:
        return _returned(sql, [columns(row) for row in rows])
    except (OperationalError, InterfaceError):
        raise
    except DatabaseError:
        if len(rows) > 1:
            return [found for row in rows for found in written(sql, [row], columns)]
        log.exception("reconcile_row_failed", row=str(rows[0])[:200])
        return []


def _returned(sql: str, rows: Sequence[Sequence[Any]]) -> list[Any]:
    with undone_if_refused(), connection.cursor() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        return [row[0] for row in cursor.fetchall()]


def undone_if_refused() -> AbstractContextManager[Any]:
    """A statement alone undoes itself; within a transaction of the caller it needs a savepoint to do so."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()
