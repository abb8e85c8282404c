"""`migrate` that says which migration it is at, and of how many."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.commands.migrate import Command
from django.db.models.signals import pre_migrate


class CountedMigrate(Command):
    """Prints `migration 3 of 40: boxes.0002_slots` as each begins."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._begun = self._planned = 0

    def take_note(self, *, plan: list[Any], **_: Any) -> None:
        """Receives `pre_migrate`, which knows the plan."""
        self._planned = len(plan)

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        if action in {"apply_start", "unapply_start"}:
            self._begun += 1
            self.stdout.write(f"migration {self._begun} of {self._planned}: {migration}")
            self.stdout.flush()


def migrate() -> None:
    """Bring the database up to date."""
    command = CountedMigrate()
    pre_migrate.connect(command.take_note, dispatch_uid="counted-migrate")
    try:
        call_command(command, interactive=False, verbosity=1)
    finally:
        pre_migrate.disconnect(dispatch_uid="counted-migrate")
