"""What `manage.py` does once the installed Python runs it."""

from __future__ import annotations

import getpass
import os
import sys
import textwrap
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, CommandError, ManagementUtility
from django.core.management.base import SystemCheckError
from django.db import Error

from base.errors import CodedError

BY_HAND = {"runs", "jobs", "leaks", "forge", "reconcile_boxes", "recover_work", "expire_assignments"}
FOR_PEOPLE = BY_HAND | {"doctor", "fleet", "box_usage", "webhooks"}
ROLES = {"run_worker": "worker", "qcluster": "scheduler"}  # which process of the installation a command is


def main(arguments: list[str]) -> int:
    """Run a command. What an operator can mend is one sentence, not a trace."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "openagents_site.settings")
    if len(arguments) > 1 and arguments[1] in ROLES:
        os.environ.setdefault("PROCESS_ROLE", ROLES[arguments[1]])
    try:
        if arguments[1:2] and arguments[1] in FOR_PEOPLE:
            os.environ.setdefault("LOG_LEVEL", "ERROR")  # they say themselves what they saw
        if arguments[1:] in ([], ["help"], ["--help"], ["-h"]):
            return _help()
        with _named_in_history(arguments):
            _Utility(arguments).execute()
    except Error as error:
        from openagents_site.database_errors import sentence as sentence_for

        sentence = sentence_for(error)
        if sentence is None:
            raise
        print(f"manage.py: {sentence}", file=sys.stderr)
        return 1
    except (ImproperlyConfigured, CodedError) as error:
        sentence = error.detail if isinstance(error, CodedError) else str(error)
        print(f"manage.py: {sentence}", file=sys.stderr)
        return 1
    return 0


class _Utility(ManagementUtility):
    """Django's, but that what a command refuses begins as everything else does that is told here."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        execute = command.execute

        def told(*args: Any, **options: Any) -> Any:
            try:
                return execute(*args, **options)
            except SystemCheckError:
                raise
            except CommandError as error:
                if options.get("traceback"):
                    raise
                print(f"manage.py: {error}", file=sys.stderr)
                sys.exit(error.returncode)

        command.execute = told  # type: ignore[method-assign]
        return command


def _help() -> int:
    """Our commands first, each with its first sentence; then the names of all others."""
    from openagents_site.commands import others, ours

    django.setup()
    print("Commands of this installation, `manage.py COMMAND --help` tells more:\n")
    for name, sentence in ours():
        print(f"  {name:<20} {sentence}")
    print("\nOf Django and other packages:\n")
    print(textwrap.fill(", ".join(others()), width=100, initial_indent="  ", subsequent_indent="  "))
    return 0


def _named_in_history(arguments: list[str]) -> AbstractContextManager[object]:
    """What an operator changes by hand carries the command and the system's user in its history."""
    if len(arguments) < 2 or arguments[1] not in BY_HAND:
        return nullcontext()
    django.setup()
    import pghistory

    named: AbstractContextManager[object] = pghistory.context(
        command=f"manage.py {arguments[1]}", operator=getpass.getuser()
    )
    return named
