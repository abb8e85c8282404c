"""`manage.py prune`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from openagents_site.retention import Forgotten, prune


class Command(BaseCommand):
    help = (
        "Delete what is kept for a time only: logs of runs, history, results of scheduled tasks and the like, as the "
        "RETENTION_... settings say. The ledger itself is never touched. The scheduler does this every day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        found = prune(dry_run=options["dry_run"])
        for forgotten in found:
            self.stdout.write(_line(forgotten, "would be deleted" if options["dry_run"] else "deleted"))
        if any(forgotten.rows is None for forgotten in found):
            raise CommandError("not everything could be looked at; the log says why")


def _line(forgotten: Forgotten, done: str) -> str:
    if not forgotten.days:
        return f"{forgotten.what}: kept for ever"
    if forgotten.rows is None:
        return f"{forgotten.what}: failed"
    age = f"older than {forgotten.days} day{'s' if forgotten.days > 1 else ''}"
    return f"{forgotten.what}: {forgotten.rows} {done}, {age}"
