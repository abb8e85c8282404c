"""`manage.py box_usage`: what boxes cost."""

from __future__ import annotations

import argparse
import csv
import json
from datetime import UTC, datetime
from typing import Any, TextIO, cast
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import QuerySet

from base.amounts import counted
from base.console import console_of, table_of
from boxes import usage
from boxes.console import totals_cells
from boxes.models import Box
from boxes.usage import Group, Grouping, Totals

HEADINGS = ("BOXES", "NOT SETTLED", "TIME", "COST (USD)")
FIELDS = ("key", "name", "boxes", "unsettled_boxes", "lifetime_seconds", "settled_cost_microusd")


class Command(BaseCommand):
    help = (
        "Say what boxes cost, by day, box or owner. A box whose cost is not known (yet) is counted as not settled and "
        "never as zero. Money in --csv and --json is in micro-US-dollars."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--group", choices=[one.value for one in Grouping], default="owner", help="default: owner"
        )
        parser.add_argument("--owner", metavar="NAME", help="only of this account (its name in addresses)")
        parser.add_argument("--conversation", type=_uuid, metavar="ID", help="only of this conversation")
        parser.add_argument(
            "--since", type=_day, metavar="DAY", help="only boxes made on this day (UTC) or later"
        )
        parser.add_argument("--until", type=_day, metavar="DAY", help="only boxes made before this day (UTC)")
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--csv", action="store_true", help="comma-separated values, for a spreadsheet")
        form.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        boxes = _chosen(options)
        groups, totals = usage.grouped(boxes, Grouping(options["group"])), usage.totals(boxes)
        if options["csv"]:
            self._print_csv(groups)
        elif options["json"]:
            self.stdout.write(json.dumps({**totals, "groups": [_facts(group) for group in groups]}))
        else:
            self._print_table(options["group"].upper(), groups, totals)

    def _print_csv(self, groups: list[Group]) -> None:
        writer = csv.DictWriter(cast("TextIO", self.stdout._out), FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_without_formulas(_facts(group)) for group in groups)

    def _print_table(self, heading: str, groups: list[Group], totals: Totals) -> None:
        rows = [(group.label, *totals_cells(group.totals)) for group in groups]
        console = console_of(self.stdout)
        console.print(
            table_of((heading, *HEADINGS), [*rows, ("total", *totals_cells(totals))], numbers=HEADINGS)
        )
        if totals["unsettled_boxes"]:
            console.print(
                f"the cost of {counted(totals['unsettled_boxes'], 'box', 'boxes')} is not known (yet) and not in the sums"
            )


def _chosen(options: dict[str, Any]) -> QuerySet[Box]:
    boxes = Box.objects.all()
    if options["owner"]:
        boxes = boxes.filter(conversation__visitor__user__slug__iexact=options["owner"])
    if options["conversation"]:
        boxes = boxes.filter(conversation_id=options["conversation"])
    if options["since"]:
        boxes = boxes.filter(created_at__gte=options["since"])
    if options["until"]:
        boxes = boxes.filter(created_at__lt=options["until"])
    return boxes


def _facts(group: Group) -> dict[str, Any]:
    return {"key": group.key, "name": group.label, **group.totals}


def _without_formulas(row: dict[str, Any]) -> dict[str, Any]:
    """A label that a spreadsheet would take for a formula is marked as text."""
    return {
        name: f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" else value
        for name, value in row.items()
    }


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a day is written like 2026-01-31, not {text}") from None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a conversation has a UUID, not {text}") from None
