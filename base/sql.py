"""SQL functions that Django does not have."""

from __future__ import annotations

from typing import Any

from django.db.models import DateTimeField, Func
from django.db.models.functions import Length
from psycopg.types.json import Jsonb


class OctetLength(Length):
    """Length of a text in bytes."""

    function = "OCTET_LENGTH"


class ClockTimestamp(Func):
    """The database's wall clock, which moves also inside a transaction; `Now()` is that of the transaction's start."""

    template = "clock_timestamp()"
    output_field = DateTimeField()


def as_json(value: Any) -> Any:
    """A parameter for a jsonb column; the stubs of cursors do not know the driver's wrapper."""
    return Jsonb(value)
