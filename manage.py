#!/usr/bin/env python
"""The one entry for every command of an operator: `manage.py help`."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

from base.embedded_postgres import explain
from base.errors import CodedError

ROLES = {"run_worker": "worker", "qcluster": "scheduler"}  # which process of the installation a command is


def main(arguments: list[str]) -> int:
    """Run a command. What an operator can mend is one sentence, not a trace."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "openagents_site.settings")
    if len(arguments) > 1 and arguments[1] in ROLES:
        os.environ.setdefault("PROCESS_ROLE", ROLES[arguments[1]])
    try:
        execute_from_command_line(arguments)
    except OperationalError as error:
        sentence = explain(error)
        if sentence is None:
            raise
        print(f"manage.py: {sentence}", file=sys.stderr)
        return 1
    except (ImproperlyConfigured, CodedError) as error:
        sentence = error.detail if isinstance(error, CodedError) else str(error)
        print(f"manage.py: {sentence}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
