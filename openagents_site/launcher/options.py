"""What `bin/up` takes on its command line. Standard library only: `--help` and what is wrong are answered before anything is installed."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from .arguments import end_if_only_asked
from .ports import HIGHEST_PORT, is_port

DESCRIPTION = """\
Start OpenAgents Boxes on this machine: PostgreSQL, the site, the scheduler, the worker and a provider of boxes, under
one supervisor. The first start ends with a first run: a box is created, a command runs in it, and the box is stopped.
Stays up until Ctrl-C, which stops everything."""
EPILOG = """\
settings (environment or .env; .env.example lists all of them):
  DATABASE_URL                     use this PostgreSQL instead of the embedded one
  BOX_API_BASE_URL, BOX_API_KEY    use this provider of boxes instead of the embedded one
  WEB_PORT, LOCALBOX_PORT          ports that must be used (else 8000 and 4600, or the next free ones)
  STATE_DIR                        where everything is kept (else .data in the checkout)"""


@dataclass(frozen=True)
class UpOptions:
    """`once`: end after the run, with its exit status. `port` is the text given, or None."""

    once: bool
    demo: bool
    verbose: bool
    port: str | None


def parse_up(arguments: list[str]) -> UpOptions:
    """Raises SystemExit with status 0 for --help and 2 for what is not understood."""
    parser = argparse.ArgumentParser(
        prog="bin/up",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--once", action="store_true", help="do one run, stop everything, exit with the run's exit status"
    )
    parser.add_argument("--no-demo", action="store_true", help="do no first run")
    parser.add_argument("--port", type=port, metavar="PORT", help="port of the site; taken: an error")
    parser.add_argument("--verbose", action="store_true", help="show every line that the processes write")
    given = parser.parse_args(arguments)
    if given.once and given.no_demo:
        parser.error("--once does a run, --no-demo does none")
    end_if_only_asked()
    return UpOptions(given.once, not given.no_demo, given.verbose, given.port)


def port(text: str) -> str:
    """The text of a port number, without zeros before it. Raises ArgumentTypeError."""
    if not is_port(text):
        raise argparse.ArgumentTypeError(f"must be a port number from 1 to {HIGHEST_PORT}, not {text!r}")
    return str(int(text))


TEST_DESCRIPTION = """\
Check the code and run every test, in parallel, against a PostgreSQL of its own. Without arguments: format, lint, types,
layers, migrations, settings and API description, then all tests; one summary, exit status 1 if anything failed.
Arguments that are not listed below go to pytest, and then only the tests run: `bin/test tests/runs -k cancel`."""


@dataclass(frozen=True)
class CheckOptions:
    """`everything`: install the optional peers and leave nothing out. `lint_only`: no tests. `pytest`: passed on."""

    everything: bool
    lint_only: bool
    pytest: list[str]


def parse_test(arguments: list[str]) -> CheckOptions:
    """Raises SystemExit with status 0 for --help and 2 for what contradicts itself."""
    parser = argparse.ArgumentParser(
        prog="bin/test",
        description=TEST_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--all", action="store_true", help="install what is optional too (as root), and leave nothing out"
    )
    parser.add_argument("--lint", action="store_true", help="only the checks that run no test")
    given, rest = parser.parse_known_args(arguments)
    if given.lint and rest:
        parser.error("--lint runs no tests, so there is nothing to pass on")
    end_if_only_asked()
    return CheckOptions(given.all, given.lint, rest)
