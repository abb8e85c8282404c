"""`manage.py localbox`: the embedded provider, a program of its own."""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from base import state_root


class Command(BaseCommand):
    help = (
        "Run the embedded box provider: `manage.py localbox [serve|doctor|sweep] [options]`. "
        "The same as `python -m localbox`, with this installation's key and folder unless LOCALBOX_* says otherwise."
    )
    requires_system_checks: list[str] = []  # it needs neither the database nor the apps

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        return super().create_parser(prog_name, subcommand, add_help=False, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("arguments", nargs=REMAINDER, help="passed on to localbox")

    def run_from_argv(self, argv: list[str]) -> None:
        """Become the provider: it replaces this process, so that whoever supervises it supervises the real one."""
        environment = dict(os.environ)
        environment.setdefault("LOCALBOX_KEY", state_root.private_secret("provider_key"))
        environment.setdefault("LOCALBOX_STATE_DIR", str(state_root.resolve() / "boxes"))
        os.execve(sys.executable, [sys.executable, "-m", "localbox", *(argv[2:] or ["serve"])], environment)  # noqa: S606

    def handle(self, *args: Any, **options: Any) -> None:
        self.run_from_argv(["manage.py", "localbox", *options["arguments"]])
