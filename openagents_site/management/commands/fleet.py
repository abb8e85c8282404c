"""`manage.py fleet`: the installation's boxes and what goes on in them, in a terminal."""

from __future__ import annotations

import math
import time
from argparse import ArgumentTypeError
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import QuerySet
from rich.console import Console, Group
from rich.live import Live

from base import connections
from base.amounts import counted
from base.clock import database_now
from base.console import console_of, fitting, plain, row_limit, table_of
from boxes.console import duration, moment
from boxes.models import Box
from openagents_site.fleet import FleetBox, fleet_boxes

HEADINGS = ("LABEL", "BOX", "STATE", "AGE", "ENDS", "IDLE SINCE", "RUN", "LAST LINE")
SPARE = ("IDLE SINCE", "LAST LINE", "AGE", "ENDS", "LABEL")
"""What a narrow terminal does without, first ones first."""
SHORTEST_PAUSE = 0.5
LONGEST_PAUSE = 3600.0


def seconds(text: str) -> float:
    """A pause between two looks. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not SHORTEST_PAUSE <= value <= LONGEST_PAUSE:
        raise ArgumentTypeError(f"must be a number from {SHORTEST_PAUSE} to {LONGEST_PAUSE:.0f}, not {text}")
    return value


class Command(BaseCommand):
    help = "Show active boxes with their newest runs, again and again until it is interrupted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="print it once and end")
        parser.add_argument("--all", action="store_true", help="stopped boxes, too, after the active ones")
        parser.add_argument("--owner", metavar="NAME", help="only of this account (its name in addresses)")
        parser.add_argument("--conversation", type=UUID, metavar="ID", help="only of this conversation")
        parser.add_argument("--limit", type=row_limit, default=50, help="how many at most (default 50)")
        parser.add_argument(
            "--every", type=seconds, default=2.0, metavar="SECONDS", help="default 2, at least 0.5"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        console = console_of(self.stdout)
        if options["once"]:
            console.print(_shown(options, console.width))
            return
        with suppress(KeyboardInterrupt):
            (_show_in_place if console.is_terminal else _print_each)(console, options)


def _show_in_place(console: Console, options: dict[str, Any]) -> None:
    """For whoever looks on: each table in place of the one before."""
    with Live(_shown(options, console.width), console=console, auto_refresh=False, screen=True) as live:
        while True:
            connections.release()
            time.sleep(options["every"])
            live.update(_shown(options, console.width), refresh=True)


def _print_each(console: Console, options: dict[str, Any]) -> None:
    """For a file or a program: one table after the other, each whole as soon as it is there."""
    while True:
        console.print(_shown(options, console.width))
        console.file.flush()
        connections.release()
        time.sleep(options["every"])


def _shown(options: dict[str, Any], width: int) -> Group:
    boxes = _chosen(options)
    found = fleet_boxes(boxes, options["limit"])
    active = boxes.filter(stopped_at=None).count()
    heading = plain(f"{counted(active, 'active box', 'active boxes')} at {moment(database_now())} UTC")
    if not found:
        return Group(heading)
    headings, rows = fitting(HEADINGS, [_cells(box) for box in found], width, SPARE)
    return Group(heading, table_of(headings, rows, numbers=("AGE",)))


def _chosen(options: dict[str, Any]) -> QuerySet[Box]:
    boxes = Box.objects.all() if options["all"] else Box.objects.filter(stopped_at=None)
    if options["owner"]:
        boxes = boxes.filter(conversation__visitor__user__slug__iexact=options["owner"])
    if options["conversation"]:
        boxes = boxes.filter(conversation_id=options["conversation"])
    return boxes


def _cells(box: FleetBox) -> tuple[str, ...]:
    run = box.run
    lines = run.output.strip().splitlines() if run else []
    return (
        box.label,
        box.box_id or "(no id yet)",
        f"{box.state} ({box.stop_reason})" if box.stop_reason else box.state,
        duration(box.age_seconds),
        moment(box.expires_at or box.stopped_at),
        moment(box.idle_since) if box.stopped_at is None and box.idle_since else "-",
        "-" if run is None else run.state if run.exit_status is None else f"{run.state} ({run.exit_status})",
        lines[-1][:60] if lines else "",
    )
