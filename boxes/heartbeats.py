"""Signs of life of the installation's processes, written by the work they do."""

from __future__ import annotations

from typing import Any

from django.db import connection

from base.sql import as_json


def stamp(name: str, details: dict[str, Any] | None = None) -> None:
    """Note that `name` did its work now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into process_heartbeats (name, stamped_at, details) values (%s, clock_timestamp(), %s)"
            " on conflict (name) do update set stamped_at = excluded.stamped_at, details = excluded.details",
            [name, as_json(details or {})],
        )


def age_seconds(name: str) -> float | None:
    """How long ago `name` last did its work; None if it never did."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select extract(epoch from clock_timestamp() - stamped_at) from process_heartbeats where name = %s",
            [name],
        )
        row = cursor.fetchone()
    return float(row[0]) if row else None
