"""Who waits holds no database connection: a web process has a few of them for hundreds of requests."""

from __future__ import annotations

from django.db import connection


def release() -> None:
    """Close this thread's connection, or give it back to the pool; the next query takes one. Not inside a transaction."""
    if not connection.in_atomic_block:
        connection.close()


def release_to_pool() -> None:
    """`release`, where there is a pool. A process that has one connection a thread keeps it: making one costs more."""
    if connection.settings_dict["OPTIONS"].get("pool"):
        release()
