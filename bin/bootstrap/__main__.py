"""Make a checkout runnable, then become the command: `python -I bin/bootstrap up|test|bench|fuzz-api|faults ARGUMENTS`.

Uses nothing but the standard library, since nothing is installed yet. It promises

- a virtual environment in `.venv` that holds exactly what `requirements.txt` pins (for `bin/test` and
  `bin/bench` also `requirements-dev.txt`), every package checked against its hash;
- that a second start installs nothing and takes no time, a half-made environment is made anew, and two starts at the
  same time do not disturb each other;
- that arguments which the command does not understand are refused before anything is installed;
- that it writes below the checkout only (`.venv` and `.cache`), and needs no HOME;
- one sentence and exit status 1, never a traceback, for everything that a user can meet here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from environment import holds, prepared, wanted_of
from layout import CHECKOUT
from progress import clean_environment
from reasons import Unready, sentence_for

DEVELOPMENT = ("requirements.txt", "requirements-dev.txt")
REQUIREMENTS = {
    "up": ("requirements.txt",),
    "test": DEVELOPMENT,
    "bench": DEVELOPMENT,
    "fuzz-api": DEVELOPMENT,
    "faults": DEVELOPMENT,
}
NOT_UNDERSTOOD = 2  # the exit status of argparse
PROGRAMS = {
    "up": ("openagents_site.launcher", "up"),
    "test": ("openagents_site.launcher", "test"),
    "bench": ("benchmarks",),
    "fuzz-api": ("tests.contract.fuzz_long",),
    "faults": ("tests.faults.long",),
}


def main(arguments: list[str]) -> int:
    """Prepare and become the command; returns only if that is not possible."""
    command, *rest = arguments
    try:
        if {"-h", "--help"} & set(rest[:1]):
            become(Path(sys.executable), command, rest)
        if refusal := refused(command, rest):
            sys.stderr.write(refusal)
            return NOT_UNDERSTOOD
        become(prepared(REQUIREMENTS[command]), command, rest)
    except Unready as reason:
        return say_why(command, str(reason))
    except OSError as error:
        return say_why(command, sentence_for(error))
    except KeyboardInterrupt:
        print(f"\nbin/{command}: stopped while installing; the next start goes on.", file=sys.stderr)
        return 130


def become(python: Path, command: str, rest: list[str]) -> NoReturn:
    """Replace this process by the command proper."""
    environment = clean_environment() | {"OPENAGENTS_INVOKED_FROM": _working_folder()}
    os.chdir(CHECKOUT)
    os.execve(python, [str(python), "-m", *PROGRAMS[command], *rest], environment)


def refused(command: str, rest: list[str]) -> str:
    """What the command says against its arguments, asked where it takes a while to install what it needs; "" if nothing."""
    if holds(wanted_of(REQUIREMENTS[command])):
        return ""  # the command itself says so at once
    asked = subprocess.run(
        [sys.executable, "-m", *PROGRAMS[command], *rest],
        cwd=CHECKOUT,
        env=clean_environment() | {"OPENAGENTS_ONLY_ARGUMENTS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return asked.stderr if asked.returncode == NOT_UNDERSTOOD else ""


def say_why(command: str, reason: str) -> int:
    print(f"bin/{command}: {reason}.", file=sys.stderr)
    return 1


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # the folder was removed under us
        return str(CHECKOUT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
