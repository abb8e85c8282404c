"""What the commands in `bin` have in common on their command lines. Standard library only, since nothing may be installed yet."""

from __future__ import annotations

import argparse
import math
import os
import sys

ONLY_ARGUMENTS = "OPENAGENTS_ONLY_ARGUMENTS"  # set by bin/bootstrap, which asks before it installs anything


def end_if_only_asked() -> None:
    """End well where nothing was asked but whether the arguments are understood."""
    if os.environ.get(ONLY_ARGUMENTS):
        sys.exit(0)


def minutes(text: str) -> float:
    """How long, in minutes: a number that is not negative and has an end. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of minutes, not {text!r}")
    return value
