"""`manage.py restore`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from base.amounts import counted
from openagents_site.backups.copies import restore, verify


class Command(BaseCommand):
    help = (
        "Put a copy of `manage.py backup` back, after checking every file of it. Stop web, worker and scheduler first. "
        "Refuses a database that is not empty unless --replace is given."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, help="the folder of the copy")
        parser.add_argument("--replace", action="store_true", help="drop what the database holds")
        parser.add_argument("--check", action="store_true", help="only check the copy's files")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["directory"].absolute()
        copy = verify(folder) if options["check"] else restore(folder, replace=options["replace"])
        done = "is whole" if options["check"] else "was restored; run manage.py migrate"
        self.stdout.write(f"The copy of {copy.made_at} {done}: {counted(sum(copy.rows.values()), 'row')}.")
