"""`manage.py setup_schedules`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from openagents_site import schedules
from openagents_site.periodic import periodic_work


class Command(BaseCommand):
    help = (
        "Make the scheduled tasks and the slots of periodic passes what this release needs. Safe to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        counts = schedules.install()
        for work in periodic_work():
            work.ensure()
        self.stdout.write(
            f"{len(schedules.SCHEDULES)} schedules: {counts['made']} made, {counts['changed']} changed, "
            f"{counts['deleted']} deleted"
        )
