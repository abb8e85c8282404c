"""`manage.py run_worker`."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from typing import Any

import structlog
from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError

from openagents_site.periodic import periodic_work
from openagents_site.registry import drivers
from openagents_site.worker import Worker

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = (
        "Drive due runs and boxes, and run the reconcile pass when it is due. Any number may run, on any number of "
        "machines: they share the work. SIGTERM finishes what is in flight. Ends with an error when the database is "
        "gone; whatever supervises it starts it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-passes", action="store_true", help="drive due rows only; leave the passes to others"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            worker = Worker(drivers(), [] if options["no_passes"] else periodic_work())
            signal.signal(signal.SIGTERM, lambda *_: worker.stop())
            signal.signal(signal.SIGINT, lambda *_: worker.stop())
            worker.run()
        except (OperationalError, InterfaceError) as error:
            log.error("worker_lost_database", error=str(error).splitlines()[0])
            sys.exit(1)
