"""`manage.py reconcile_boxes`: one pass, by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from base.amounts import counted
from base.console import console_of, table_of
from boxes.errors import BoxError
from boxes.reconciler import PassResult, plan, reconcile
from boxes.reconciler.leaks import LeakStep
from boxes.reconciler.survey import Survey
from boxes.reconciler.types import Action, End, Leave, Note, Stop

INCOMPLETE = 1
REFUSED = 2


class Command(BaseCommand):
    help = (
        "Bring the ledger and the provider to agree: one pass. Exit status 0: all was attended to; 1: incomplete, some "
        "boxes could not be looked at or stopped, or another pass is at work; 2: the provider's list could not be had."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="say what would be done with each box and why, and do nothing",
        )
        parser.add_argument("--all", action="store_true", help="with --dry-run: show also what needs nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        self.console = console_of(self.stdout)
        try:
            with _progress(console_of(self.stderr)) as progress:
                found = plan(progress) if options["dry_run"] else reconcile(progress)
        except BoxError as error:
            raise CommandError(f"{error.code}: {error.detail}", returncode=REFUSED) from None
        if isinstance(found, Survey):
            self._show_plan(found, with_all=options["all"], as_json=options["json"])
            incomplete = any(_is_unanswered(entry.action) for entry in found.decisions)
        else:
            self._show_result(found, as_json=options["json"])
            incomplete = found.incomplete or found.skipped
        if incomplete:
            sys.exit(INCOMPLETE)

    def _show_result(self, result: PassResult, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(result.as_dict()))
            return
        if result.skipped:
            self.console.print("another pass is at work; nothing was done here")
            return
        acted = [entry for entry in result.decisions if not _is_quiet(entry.action)]
        if acted:
            self.console.print(_table((entry.row.box_id, entry.row.label, entry.action) for entry in acted))
        counts = {name: count for name, count in result.as_dict().items() if count and name != "incomplete"}
        self.console.print(", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing to do")
        if result.incomplete:
            self.console.print("incomplete: what is left is tried again in a later pass")

    def _show_plan(self, found: Survey, *, with_all: bool, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(_as_object(found)))
            return
        shown = [entry for entry in found.decisions if with_all or not _is_quiet(entry.action)]
        if shown:
            self.console.print(_table((entry.row.box_id, entry.row.label, entry.action) for entry in shown))
        for heading, rows in (("leaks", _leaks(found)), ("undone stops", _undone(found))):
            if rows:
                self.console.print(f"\n{heading}")
                self.console.print(table_of(("BOX", "WOULD", "WHY"), rows))
        if found.is_suspect:
            self.console.print(
                "\nso many boxes are missing that the first pass to see it writes none of them off"
            )
        quiet = sum(1 for entry in found.decisions if _is_quiet(entry.action))
        self.console.print(
            f"{counted(len(found.decisions), 'row')}, {counted(len(found.listing.boxes), 'box', 'boxes')} at the provider,"
            f" {quiet} need{'s' if quiet == 1 else ''} nothing;"
            " nothing was done"
        )


def _table(entries: Iterator[tuple[str | None, str, Action]]) -> Any:
    return table_of(
        ("BOX", "LABEL", "DOES", "WHY"),
        ((box_id or "(no id yet)", label, _does(action), action.why) for box_id, label, action in entries),
    )


def _does(action: Action) -> str:
    if isinstance(action, Stop | End):
        return f"{type(action).__name__.lower()} ({action.reason})"
    notices = getattr(action, "notices", ())
    told = ", ".join(f"{notice.event_type}: {notice.reason}" for notice in notices)
    name = {"Note": "observe", "BackOff": "back off", "PutOff": "put off"}.get(type(action).__name__, "leave")
    return f"{name}, tell {told}" if told else name


def _is_quiet(action: Action) -> bool:
    """Nothing that anybody needs to read: a box that is well, or one that is left for a good reason."""
    if isinstance(action, Note):
        return not action.notices and not action.needs_mark
    return isinstance(action, Leave) and not action.unanswered


def _is_unanswered(action: Action) -> bool:
    return not isinstance(action, Note | Stop | End) and not _is_quiet(action)


def _leaks(found: Survey) -> list[tuple[str, str, str]]:
    return [
        (leak.box.id, str(leak.step), leak.why) for leak in found.leaks if leak.step is not LeakStep.IGNORE
    ]


def _undone(found: Survey) -> list[tuple[str, str, str]]:
    return [
        (
            entry.box.id,
            "stop again" if entry.is_due else "wait",
            f"it was stopped, and is {entry.box.raw_state}",
        )
        for entry in found.undone
    ]


def _as_object(found: Survey) -> dict[str, Any]:
    return {
        "boxes": [
            {
                "id": str(entry.row.pk),
                "box_id": entry.row.box_id,
                "label": entry.row.label,
                "does": _does(entry.action),
                "why": entry.action.why,
            }
            for entry in found.decisions
        ],
        "leaks": [dict(zip(("box_id", "does", "why"), row, strict=True)) for row in _leaks(found)],
        "undone_stops": [dict(zip(("box_id", "does", "why"), row, strict=True)) for row in _undone(found)],
        "mass_absence": found.is_suspect,
        "provider_boxes": len(found.listing.boxes),
    }


@contextmanager
def _progress(console: Console) -> Iterator[Any]:
    """A bar of the boxes that were looked at, for whoever sits at a terminal."""
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("looking at boxes"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("boxes", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
