"""Make a checkout runnable, then become the command: `python -I bin/bootstrap up|test|bench|fuzz-api|faults ARGUMENTS`.

Uses nothing but the standard library, since nothing is installed yet. It promises

- a virtual environment in `.venv` that holds exactly what `requirements.txt` pins (for `bin/test` and
  `bin/bench` also `requirements-dev.txt`), every package checked against its hash;
- that a second start installs nothing and takes no time, a half-made environment is made anew, and two starts at the
  same time do not disturb each other;
- that it writes below the checkout only (`.venv` and `.cache`), and needs no HOME;
- one sentence and exit status 1, never a traceback, for everything that a user can meet here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from environment import prepared
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
        python = Path(sys.executable) if {"-h", "--help"} & set(rest[:1]) else prepared(REQUIREMENTS[command])
        become(python, command, rest)
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
