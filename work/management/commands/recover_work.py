"""`manage.py recover_work`: take up again the jobs that nobody holds."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from work.models import Job
from work.services import recover_interrupted_jobs
from work.services.recovery import interrupted_jobs


class Command(BaseCommand):
    help = (
        "Make every job due that has not ended and that no live worker holds, and record that it was interrupted. What "
        "somebody is at work on is left alone, so it may be run at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say which jobs these are")

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        if dry_run:
            return self._list()
        recovery = recover_interrupted_jobs()
        self.stdout.write(
            f"{recovery.found} interrupted, {recovery.started} due again, {recovery.deferred} deferred"
        )
        return None

    def _list(self) -> None:
        ids = interrupted_jobs()
        for job in Job.objects.filter(pk__in=list(ids)).order_by("created_at").iterator():
            self.stdout.write(f"{job.pk}  {job.kind}  {job.status}  generation {job.generation}")
        self.stdout.write(f"{len(ids)} interrupted; nothing was changed")
