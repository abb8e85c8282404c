"""Advisory locks, named by text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection


def key_of(name: str) -> int:
    """A signed 64-bit key for a lock's name; the same in every process and release."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def hold_for_transaction(*names: str) -> None:
    """Wait for these locks in the order given; they are held until the transaction ends.

    Callers that take several must always take them in the same order. Raises outside a transaction, where the lock
    would be gone at once.
    """
    assert connection.in_atomic_block, "a transaction lock outside a transaction protects nothing"
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute("select pg_advisory_xact_lock(%s)", [key_of(name)])


@contextmanager
def held_by_session(link: psycopg.Connection, name: str) -> Iterator[bool]:
    """Try for a lock that lives as long as `link` (an autocommit connection of its own). Yields whether it was had."""
    row = link.execute("select pg_try_advisory_lock(%s)", [key_of(name)]).fetchone()
    held = bool(row and row[0])
    try:
        yield held
    finally:
        if held and not link.closed:
            link.execute("select pg_advisory_unlock(%s)", [key_of(name)])
