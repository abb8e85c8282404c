"""`manage.py run_worker`."""

from __future__ import annotations

import logging
import os
import signal
import time
from argparse import ArgumentParser
from typing import Any, NoReturn

import psycopg
import structlog
from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError

from openagents_site.periodic import periodic_work
from openagents_site.registry import drivers
from openagents_site.worker import Worker

log = structlog.get_logger(__name__)
SENDING_SECONDS = 0.2
"""What was claimed is on its way by then: a dispatch that was never sent could not be told from one that was lost."""


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
            if worker.run():
                end_now(0)  # the interpreter would wait for the threads that still look
        except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
            log.error("worker_lost_database", error=str(error).splitlines()[0])
            time.sleep(SENDING_SECONDS)
            end_now(1)


def end_now(status: int) -> NoReturn:
    """End without waiting for the threads: a poll may wait on its box for seconds, and its answer can be written nowhere."""
    logging.shutdown()
    os._exit(status)
