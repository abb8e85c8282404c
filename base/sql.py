"""SQL functions that Django does not have."""

from __future__ import annotations

from django.db.models.functions import Length


class OctetLength(Length):
    """Length of a text in bytes."""

    function = "OCTET_LENGTH"
