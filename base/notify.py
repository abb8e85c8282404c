"""NOTIFY and LISTEN: wakes, never messages. Losing one costs a second of patience and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
from django.db import connection

DUE = "due"  # something a worker drives is due now; the payload names the driver
CHANGED = "changed"  # something a viewer may be waiting for has changed; the payload names it


def notify(channel: str, payload: str = "") -> None:
    """Wake the listeners of `channel` when the current transaction commits (at once outside one)."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_notify(%s, %s)", [channel, payload])


def own_connection() -> psycopg.Connection:
    """A new autocommit connection to the product's database, outside Django's care: for LISTEN and session locks.

    It must be a direct connection: a transaction-pooling proxy gives neither.
    """
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    return psycopg.connect(**parameters, autocommit=True)


def listen(link: psycopg.Connection, channels: Iterable[str]) -> None:
    for channel in channels:
        link.execute(psycopg.sql.SQL("listen {}").format(psycopg.sql.Identifier(channel)))
