"""What commands of every app print and understand: tables, text of foreign origin, rows named by the beginning of their id."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from base.text import display_text, storable

EXIT_NOT_FOUND = 3
MOST_ROWS = 1_000_000
SHORTEST_CUT = 12
GAP = 2  # between two columns of a table
SHORT_ID = 8  # so much of an id tells it from others in a list
SHORTEST_PREFIX = 4  # hexadecimal digits of an id; fewer tell too little apart
M = TypeVar("M", bound=Model)


class _WithoutPadding(Console):
    """Prints tables without the spaces that fill up their last column, which a program would have to take off again."""

    def print(self, *objects: Any, **options: Any) -> None:
        if not any(isinstance(thing, Table | Group) for thing in objects):
            super().print(*objects, **options)
            return
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write("\n".join(line.rstrip(" ") for line in printed.get().split("\n")))


def console_of(stream: Any) -> Console:
    """A console that writes to a command's output; wide where nobody looks at it, so that lines stay whole."""
    target = getattr(stream, "_out", stream)
    if target.isatty():
        return Console(file=target, highlight=False)
    return _WithoutPadding(file=target, highlight=False, soft_wrap=True, width=200)


def plain(text: object) -> Text:
    """Text of foreign origin: no markup, and no control sequence reaches the terminal."""
    return Text(display_text(str(text)))


def fitting(
    headings: Sequence[str], rows: Sequence[Sequence[object]], width: int, spare: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows in so few columns that none needs to be broken: those in `spare` go, first ones first, until `width`
    holds the rest. The last column may be cut short, but for its first SHORTEST_CUT characters.
    """
    kept, last = list(range(len(headings))), len(headings) - 1
    texts = [[display_text(str(cell)) for cell in row] for row in rows]
    needed = {at: GAP + max(cell_len(row[at]) for row in [headings, *texts]) for at in kept}
    needed[last] = min(needed[last], GAP + SHORTEST_CUT)
    for name in spare:
        if sum(needed[at] for at in kept) - GAP <= width:
            break
        kept.remove(headings.index(name))
    room = max(SHORTEST_CUT, width - sum(needed[at] for at in kept if at != last))
    for row in texts:
        row[last] = (
            row[last] if cell_len(row[last]) <= room else set_cell_size(row[last], room - 1) + "\u2026"
        )
    return [headings[at] for at in kept], [[row[at] for at in kept] for row in texts]


def table_of(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> Table:
    """A plain table; the headings in `numbers` name columns that are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(
            heading,
            justify="right" if heading in numbers else "left",
            overflow="fold",
            no_wrap=heading in numbers,
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    return table


def row_limit(text: str) -> int:
    """How many rows a list shows at most, as an argument of a command. Raises ArgumentTypeError for what is no number above 0."""
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text}")
    return min(int(text), MOST_ROWS)


def value_text(value: object) -> str:
    """A value of a row for people: a time to the second, JSON where it has parts."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False, cls=DjangoJSONEncoder)
    return str(value)


def age(now: datetime, then: datetime) -> str:
    """How long ago, in its largest whole unit."""
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _dashed(prefix: str) -> str:
    """The beginning of an id with the dashes that it has in the database, wherever its writer put them."""
    digits, ends = prefix.replace("-", ""), (0, 8, 12, 16, 20, None)
    parts = [digits[start:end] for start, end in itertools.pairwise(ends)]
    return "-".join(part for part in parts if part)


def row_named(rows: QuerySet[M], text: str) -> M:
    """The row with this id, or the only one whose id begins so. Raises CommandError with exit status 3."""
    prefix, noun = _dashed(storable(text.strip().lower())), str(rows.model._meta.verbose_name)
    if len(prefix.replace("-", "")) < SHORTEST_PREFIX:
        why = "" if not prefix else f": at least {SHORTEST_PREFIX} characters of an id are needed"
        raise CommandError(f"there is no {noun} {text!r}{why}", returncode=EXIT_NOT_FOUND)
    beginning = rows.annotate(id_text=Cast("pk", TextField())).filter(id_text__startswith=prefix)
    found = list(beginning.order_by("pk")[:2])
    if not found:
        raise CommandError(f"there is no {noun} {text!r}", returncode=EXIT_NOT_FOUND)
    if len(found) > 1:
        raise CommandError(f"more than one {noun} begins with {text!r}", returncode=EXIT_NOT_FOUND)
    return found[0]
