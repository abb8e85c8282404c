#!/usr/bin/env python3
"""The one entry for every command of an operator: `./manage.py help`. Any Python will do: it hands over to the installed one."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

INSTALLED = Path(__file__).resolve().parent / ".venv" / "bin" / "python"


def hand_over() -> None:
    """Become the installed Python, if this one has nothing of what is needed. Exits with a sentence where there is none."""
    if find_spec("django") is not None:
        return
    if not INSTALLED.exists():
        sys.exit("manage.py: nothing is installed yet: run bin/up or bin/test first")
    os.execv(INSTALLED, [str(INSTALLED), *sys.argv])  # noqa: S606 - becoming it is the purpose


if __name__ == "__main__":
    hand_over()
    from openagents_site.command_line import main

    sys.exit(main(sys.argv))
