"""What holds for the whole installation: the name of its boxes at the provider, and whether it may create any now."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import connection

from boxes.conf import box_api
from boxes.models import Installation


def provider_ownership_marker() -> str:
    """The name of every box of ours at the provider; a box is ours if its name equals it exactly.

    The setting `ownership_marker`, else `oab-<environment>-<8 hex>`, which is generated once and kept in the database.
    """
    return box_api().ownership_marker or _kept_marker()


def _kept_marker() -> str:
    kept = Installation.objects.filter(pk=1).values_list("ownership_marker", flat=True).first()
    if kept is not None:
        return kept
    generated = f"oab-{_environment()}-{secrets.token_hex(4)}"
    Installation.objects.bulk_create([Installation(pk=1, ownership_marker=generated)], ignore_conflicts=True)
    return Installation.objects.values_list("ownership_marker", flat=True).get(pk=1)


def hold_creates(seconds: float) -> None:
    """Have no process ask for another box for so long: the provider wants to be left alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into installation (id, ownership_marker, creates_held_until)"
            " values (1, %s, clock_timestamp() + make_interval(secs => %s)) on conflict (id) do update"
            " set creates_held_until = greatest(installation.creates_held_until, excluded.creates_held_until)",
            [provider_ownership_marker(), seconds],
        )


def creates_held_seconds() -> float:
    """For how long no box is to be asked for; 0 if one may be."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select extract(epoch from creates_held_until - clock_timestamp()) from installation"
            " where creates_held_until > clock_timestamp()"
        )
        row = cursor.fetchone()
    return float(row[0]) if row else 0.0


def _environment() -> str:
    return "development" if settings.DEBUG else "production"
