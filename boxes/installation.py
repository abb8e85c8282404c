"""The name that this installation gives to its boxes at the provider."""

from __future__ import annotations

import secrets

from django.conf import settings

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


def _environment() -> str:
    return "development" if settings.DEBUG else "production"
