"""What a label may be, and the number in one that was given by counting."""

from __future__ import annotations

from django.db.models import BigIntegerField, Func

LONGEST_LABEL_BYTES = 128
NUMBER_PATTERN = "^box-([0-9]{1,18})$"
"""Longer numbers are taken as any other text: they would not fit a bigint."""


class LabelNumber(Func):
    """SQL: the number of a label `box-<number>`; null for any other label."""

    function = None
    template = "(substring(%(expressions)s from '" + NUMBER_PATTERN + "')::bigint)"
    output_field = BigIntegerField()
