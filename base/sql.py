"""SQL functions that Django does not have."""

from __future__ import annotations

from django.db.models import DateTimeField, Func
from django.db.models.functions import Length


class OctetLength(Length):
    """Length of a text in bytes."""

    function = "OCTET_LENGTH"


class ClockTimestamp(Func):
    """The database's wall clock, which moves also inside a transaction; `Now()` is that of the transaction's start."""

    template = "clock_timestamp()"
    output_field = DateTimeField()
