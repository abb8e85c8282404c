"""`manage.py runs list|show|tail|cancel|recover`: runs, by hand."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO, cast

from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from rich.console import Console
from rich.text import Text

from base.amounts import counted
from base.clock import database_now
from base.console import console_of, plain, row_limit, row_named
from base.text import display_text, storable
from runs import console as shown
from runs import services, streaming
from runs.models import Run
from runs.states import ACTIVE, RunState

EXIT_NOT_COMPLETED = 1


class Command(BaseCommand):
    help = (
        "Look at runs and act on them. RUN is an id or the beginning of one. `tail -f` follows a run until it ends and "
        "exits with 0 if it completed, else 1. Exit status 3: there is no such run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|tail|cancel|recover")
        one = actions.add_parser("list", help="the newest runs")
        one.add_argument("--state", choices=RunState.values, help="only runs in this state")
        one.add_argument("--alive", action="store_true", help="only runs that have not ended")
        one.add_argument("--box", help="only runs on this box (provider id or label)")
        one.add_argument("--limit", type=row_limit, default=20, help="how many (default 20)")
        one.add_argument("--json", action="store_true", help="one JSON object a line")
        one = _with_run(actions.add_parser("show", help="all that is known of a run"))
        one.add_argument("--json", action="store_true", help="as one JSON object")
        one = _with_run(actions.add_parser("tail", help="what a run printed"))
        one.add_argument("-f", "--follow", action="store_true", help="go on until it ends")
        one.add_argument("--offset", type=int, help="from this raw offset on (default: the last 24 KiB)")
        one.add_argument("--raw", action="store_true", help="leave terminal control sequences in")
        one = _with_run(actions.add_parser("cancel", help="ask for the end of a run"))
        one.add_argument("--wait", action="store_true", help="until it has ended")
        actions.add_parser("recover", help="make every run due that nobody drives")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        self.out = cast("TextIO", self.stdout._out)  # the stream itself: output is not to get a newline
        self.console = console_of(self.stdout)
        getattr(self, f"_{action}")(**options)

    def _list(
        self, *, state: str | None, alive: bool, box: str | None, limit: int, json: bool, **_: Any
    ) -> None:
        runs = Run.objects.select_related("conversation_box").defer("output", "output_state")
        runs = runs.filter(state=state) if state else runs
        runs = runs.filter(state__in=ACTIVE) if alive else runs
        if box:
            box = storable(box)
            runs = runs.filter(conversation_box__box_id=box) | runs.filter(conversation_box__label=box)
        found = list(runs[:limit])
        if json:
            for run in found:
                self._print_json(run)
        elif found:
            self.console.print(shown.list_table(found, database_now(), short_ids=self.console.is_terminal))
        else:
            self.console.print("no runs")

    def _show(self, *, run: str, json: bool, **_: Any) -> None:
        found = row_named(Run.objects.select_related("conversation_box"), run)
        if json:
            self._print_json(found)
        else:
            shown.show(self.console, found)

    def _tail(self, *, run: str, follow: bool, offset: int | None, raw: bool, **_: Any) -> None:
        found = row_named(Run.objects.select_related("conversation_box"), run)
        position = found.output_base_offset if offset is None else max(0, offset)
        if follow:
            self._follow(found, position, raw=raw)
            return
        for piece in services.log_text(found, position):
            self._print_output(piece, raw=raw)

    def _follow(self, run: Run, position: int, *, raw: bool) -> None:
        for news in streaming.follow(run.pk, position):
            match news:
                case streaming.Printed(piece):
                    if piece.truncated:
                        self._note(f"[{piece.start - piece.offset:,} bytes are not kept]")
                    self._print_output(piece.output, raw=raw)
                case streaming.Stands(row, is_end):
                    run = row
                    self._note(shown.how_it_ended(row) if is_end else row.state, row)
        if run.state != RunState.COMPLETED:
            sys.exit(EXIT_NOT_COMPLETED)

    def _cancel(self, *, run: str, wait: bool, **_: Any) -> None:
        asked = services.cancel(row_named(Run.objects.select_related("conversation_box"), run))
        while wait and not asked.is_terminal:
            for news in streaming.follow(asked.pk, asked.last_output_offset):
                if isinstance(news, streaming.Stands):
                    asked = news.run
        how = shown.how_it_ended(asked) if asked.is_terminal else "will be ended"
        self.console.print(plain(f"{asked.pk}: {how}"))

    def _recover(self, **_: Any) -> None:
        self.console.print(f"{counted(services.recover(), 'run')} made due")

    def _print_json(self, run: Run) -> None:
        self.stdout.write(json.dumps(shown.facts(run), cls=DjangoJSONEncoder))

    def _print_output(self, text: str, *, raw: bool) -> None:
        colours = self.console.is_terminal and not self.console.no_color
        self.out.write(text if raw else display_text(text, colours=colours))
        self.out.flush()

    def _note(self, text: str, run: Run | None = None) -> None:
        """A remark about the run, beside its output."""
        style = shown.COLOURS[RunState(run.state)] if run else "dim"
        Console(stderr=True, highlight=False).print(Text(f"-- {display_text(text)}", style=style))


def _with_run(parser: CommandParser) -> CommandParser:
    parser.add_argument("run", metavar="RUN", help="id of a run, or the beginning of one")
    return parser
