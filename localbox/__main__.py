"""`python -m localbox serve | sweep | doctor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .settings import FLAGS, SettingsError, take_from_environment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. A mistake of the operator is one sentence on standard error."""
    given = _parser().parse_args(arguments)
    try:
        return _run(given)
    except SettingsError as error:
        print(f"localbox: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(given: argparse.Namespace) -> int:
    if given.command == "doctor":
        from . import doctor

        return doctor.main()
    from . import server

    flags = {name: getattr(given, name) for name in FLAGS}
    settings = take_from_environment(flags, key_env=given.key_env)
    if given.command == "serve":
        return server.serve(settings)
    print(f"localbox: every box is stopped; {server.sweep(settings)} stray processes were ended", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="localbox",
        description="Boxes on this machine, behind the Box API. Every flag can also be LOCALBOX_<NAME> in the "
        "environment; docs/reference/localbox.md has the rest.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="serve | sweep | doctor")
    commands.add_parser("doctor", help="say which sandbox would be used here, and why")
    _with_settings(commands.add_parser("serve", help="serve the API until SIGTERM or Ctrl-C"))
    _with_settings(
        commands.add_parser("sweep", help="end what a killed server left behind, and archive its boxes")
    )
    return parser


def _with_settings(command: argparse.ArgumentParser) -> None:
    for name, text in FLAGS.items():
        command.add_argument(f"--{name.replace('_', '-')}", help=text)
    command.add_argument(
        "--key-env",
        default="LOCALBOX_KEY",
        metavar="NAME",
        help="environment variable that holds the bearer key (default LOCALBOX_KEY); without one, a key is made and "
        "kept in the state folder",
    )


if __name__ == "__main__":
    sys.exit(main())
