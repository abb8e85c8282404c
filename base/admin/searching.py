"""Searching a long list by what an index knows: exact values and prefixes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.contrib.admin.utils import get_fields_from_path
from django.db import models
from django.db.models import QuerySet

LEAST_PREFIX = 4
_HEX = re.compile(r"[0-9a-fA-F-]+")


def search(rows: QuerySet[Any], fields: Sequence[str], term: str) -> QuerySet[Any]:
    """The rows in which the first of `fields` that knows the term has it; none if no field does.

    A field is a path. An id is found by all of it or by its first four digits or more; a text whole, or else, with a `^`
    before the field's name, by its beginning. Each field is one look into its index.
    """
    term = term.strip()
    if not term or "\0" in term:
        return rows if not term else rows.none()
    model = rows.model
    for wanted in _conditions(model, fields, term):
        if model._default_manager.filter(**wanted).exists():
            return rows.filter(**wanted)
    return rows.none()


def _conditions(model: type[models.Model], fields: Sequence[str], term: str) -> Iterator[dict[str, Any]]:
    for name in fields:
        path = name.removeprefix("^")
        field = get_fields_from_path(model, path)[-1]
        target = getattr(field, "target_field", field)
        if isinstance(target, models.UUIDField):
            yield from _by_id(path, term)
        elif isinstance(target, models.IntegerField):
            if term.isascii() and term.isdigit() and len(term) < 19:
                yield {path: int(term)}
        elif name.startswith("^"):
            yield {path: term}
            yield {f"{path}__startswith": term}
        else:
            yield {path: term}


def _by_id(path: str, term: str) -> Iterator[dict[str, Any]]:
    digits = term.replace("-", "")
    if not _HEX.fullmatch(term) or not LEAST_PREFIX <= len(digits) <= 32:
        return
    if len(digits) == 32:
        yield {path: UUID(digits)}
        return
    lowest, highest = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    yield {f"{path}__gte": lowest, f"{path}__lte": highest}
