"""`manage.py jobs list|show|tail|cancel`: jobs, by hand."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO, cast

from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from rich.console import Console
from rich.text import Text

from base.clock import database_now
from base.console import console_of, plain, row_limit, row_named
from base.text import display_text
from work import console as shown
from work import following, services
from work.models import Job
from work.states import ACTIVE, JobKind, JobStatus

EXIT_NOT_COMPLETED = 1


class Command(BaseCommand):
    help = (
        "Look at jobs and act on them. JOB is an id or the beginning of one. `tail` follows a job until it ends, prints its "
        "report and exits with 0 if it completed, else 1. Exit status 3: there is no such job."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|tail|cancel")
        one = actions.add_parser("list", help="the newest jobs")
        one.add_argument("--status", choices=JobStatus.values, help="only jobs in this status")
        one.add_argument("--kind", choices=JobKind.values, help="only jobs of this kind")
        one.add_argument("--alive", action="store_true", help="only jobs that have not ended")
        one.add_argument("--limit", type=row_limit, default=20, help="how many (default 20)")
        one.add_argument("--json", action="store_true", help="one JSON object a line")
        one = _with_job(
            actions.add_parser("show", help="all that is known of a job, its steps and its report")
        )
        one.add_argument("--json", action="store_true", help="as one JSON object")
        _with_job(actions.add_parser("tail", help="follow a job to its report"))
        one = _with_job(actions.add_parser("cancel", help="ask for the end of a job"))
        one.add_argument("--wait", action="store_true", help="until it has ended")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        self.out = cast("TextIO", self.stdout._out)  # the stream itself: text is not to get a newline
        self.console = console_of(self.stdout)
        getattr(self, f"_{action}")(**options)

    def _list(
        self, *, status: str | None, kind: str | None, alive: bool, limit: int, json: bool, **_: Any
    ) -> None:
        jobs = Job.objects.all()
        jobs = jobs.filter(status=status) if status else jobs
        jobs = jobs.filter(kind=kind) if kind else jobs
        jobs = jobs.filter(status__in=list(ACTIVE)) if alive else jobs
        found = list(jobs[:limit])
        if json:
            for job in found:
                self._print_json(job)
        elif found:
            self.console.print(shown.list_table(found, database_now(), short_ids=self.console.is_terminal))
        else:
            self.console.print("no jobs")

    def _show(self, *, job: str, json: bool, **_: Any) -> None:
        found = row_named(Job.objects.all(), job)
        if json:
            self._print_json(found)
        else:
            shown.show(self.console, found, services.list_job_steps(found))

    def _tail(self, *, job: str, **_: Any) -> None:
        followed = row_named(Job.objects.all(), job)
        for news in following.follow(followed.pk):
            match news:
                case following.Wrote(text, anew):
                    self.out.write(display_text(f"\n[anew]\n{text}" if anew else text))
                    self.out.flush()
                case following.Stepped(step):
                    Console(stderr=True, highlight=False).print(shown.step_line(step))
                case following.Stands(row):
                    followed = row
                    self._note(shown.how_it_stands(row), row)
        self.console.print(plain(f"\n{followed.report}"))
        if followed.status != JobStatus.COMPLETED:
            sys.exit(EXIT_NOT_COMPLETED)

    def _cancel(self, *, job: str, wait: bool, **_: Any) -> None:
        asked = services.cancel_job(row_named(Job.objects.all(), job).pk)
        if wait and not asked.is_terminal:
            for news in following.follow(asked.pk):
                asked = news.job if isinstance(news, following.Stands) else asked
        self.console.print(plain(f"{asked.pk}: {shown.how_it_stands(asked)}"))

    def _print_json(self, job: Job) -> None:
        self.stdout.write(json.dumps(shown.facts(job), cls=DjangoJSONEncoder))

    def _note(self, text: str, job: Job) -> None:
        """A remark about the job, beside its text."""
        style = shown.COLOURS[JobStatus(job.status)]
        Console(stderr=True, highlight=False).print(Text(f"-- {display_text(text)}", style=style))


def _with_job(parser: CommandParser) -> CommandParser:
    parser.add_argument("job", metavar="JOB", help="id of a job, or the beginning of one")
    return parser
