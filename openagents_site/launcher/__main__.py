"""`python -m openagents_site.launcher up|test ARGUMENTS`, as the two commands in `bin` call it."""

from __future__ import annotations

import signal
import sys

signal.signal(
    signal.SIGINT, signal.SIG_DFL
)  # until a command takes care of it, Ctrl-C ends us without a word

from .options import parse_test, parse_up  # noqa: E402


def main(arguments: list[str]) -> int:
    command, *rest = arguments or [""]
    if command == "up":
        up_options = parse_up(rest)  # answers --help, before anything is imported that may not be installed
        from . import up

        return up.main(up_options)
    if command == "test":
        test_options = parse_test(rest)
        from . import checks

        return checks.main(test_options)
    sys.exit("usage: python -m openagents_site.launcher up|test ...")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
