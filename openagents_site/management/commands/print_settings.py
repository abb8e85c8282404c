"""`manage.py print_settings`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from openagents_site.environment_reference import reference


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # also where a setting is wrong elsewhere
    help = "Print every setting with its meaning, bounds and default, as a file for `.env`."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(reference(), ending="")
