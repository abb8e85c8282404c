"""`manage.py backup`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from base.amounts import counted
from openagents_site.backups.copies import backup


class Command(BaseCommand):
    help = (
        "Copy the database, the repositories and the installation's secrets into a new folder, with a manifest. "
        "Everything may go on running. Keep the copy as you keep the secrets."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, help="a folder that is new or empty")

    def handle(self, *args: Any, **options: Any) -> None:
        copy = backup(options["directory"].absolute())
        rows = sum(copy.rows.values())
        self.stdout.write(f"{options['directory']}: {counted(rows, 'row')}, {copy.size / 1e6:.1f} MB")
