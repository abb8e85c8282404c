"""`pair`, `run`, `status`, `unpair`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from connector import VERSION, agents, logs
from connector.errors import ConnectorError, NotLetIn, Refused, Unreachable
from connector.journal import ENDED, Journal
from connector.pairing import pair
from connector.places import Pairing, Places, default_folder
from connector.policy import TIERS
from connector.server import Server


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    places = Places(options.state_dir or default_folder())
    logs.set_up()
    try:
        options.command(places, options)
    except ConnectorError as error:
        print(f"connector: {error}", file=sys.stderr)
        return error.exit_code
    except (OSError, sqlite3.Error) as error:
        print(f"connector: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _pair(places: Places, options: argparse.Namespace) -> None:
    with contextlib.suppress(ConnectorError):
        paired = places.load()
        if not options.again:
            raise SystemExit(f"connector: paired already as {paired.name}; `unpair` first, or use --again")
    places.lock()  # not beneath a connector that runs: what it remembers goes with the older pairing
    asyncio.run(
        pair(
            places, server=options.server, roots=options.root, tier=options.tier, name=options.name,
            named=options.agent, say=lambda line: print(line, flush=True),
        )
    )  # fmt: skip


def _run(places: Places, options: argparse.Namespace) -> None:
    pairing = places.load()
    pairing.agents |= agents.parse_named(options.agent)
    places.lock()  # held until the process ends
    from connector.service import run  # only it speaks the agents' protocol, which takes a second to load

    asyncio.run(run(places, pairing))


def _status(places: Places, options: argparse.Namespace) -> None:
    pairing = places.load()
    found = agents.installed(pairing.agents)
    print(f"paired as  {pairing.name} ({pairing.machine_id})")
    print(f"server     {pairing.server}")
    print(f"tier       {pairing.tier}")
    print(f"roots      {', '.join(pairing.roots) or 'none'}")
    print(f"agents     {', '.join(sorted(found)) or 'none'}")
    print(f"running    {'yes' if places.is_running() else 'no'}")
    if places.journal_file.exists():
        try:
            _print_journal(Journal(places.journal_file))
        except sqlite3.Error as error:
            print(f"journal    cannot be read ({error}); `run` begins a new one if it is broken")


def _print_journal(journal: Journal) -> None:
    working = [found for found in journal.delegations() if found.phase != ENDED]
    print(f"at work    {len(working)}")
    print(f"to tell    {journal.waiting()}")
    journal.close()


def _unpair(places: Places, options: argparse.Namespace) -> None:
    pairing = places.load()
    places.lock()
    if not options.forget:
        try:
            asyncio.run(_give_back(pairing))
        except NotLetIn:
            pass  # it was revoked before
        except (Unreachable, Refused) as error:
            raise ConnectorError(
                f"the server does not take the key back ({error}); --forget removes it here only"
            ) from None
    places.forget()
    print("Unpaired.")


async def _give_back(pairing: Pairing) -> None:
    server = Server(pairing.server, pairing.token)
    try:
        await server.unpair()
    finally:
        await server.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="connector", description="Delegate work to the coding agents on this computer."
    )
    parser.add_argument("--version", action="version", version=VERSION)
    parser.add_argument("--state-dir", type=Path, help="where it keeps its key and what it must remember")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    pairing = commands.add_parser("pair", help="ask to be paired with your account")
    pairing.add_argument("--server", required=True, help="such as https://boxes.example.org")
    pairing.add_argument(
        "--root", action="append", default=[], metavar="FOLDER", help="agents may work in it; repeatable"
    )
    pairing.add_argument(
        "--tier", choices=TIERS, default="curated", help="what agents may do (default: curated)"
    )
    pairing.add_argument("--name", help="how this computer is called (default: its host name)")
    pairing.add_argument("--again", action="store_true", help="although it is paired already")
    pairing.set_defaults(command=_pair)
    running = commands.add_parser("run", help="wait for delegations and run them")
    running.set_defaults(command=_run)
    for command in (pairing, running):
        command.add_argument(
            "--agent", action="append", default=[], metavar="ID=COMMAND", help="an agent of your own"
        )
    commands.add_parser("status", help="say how things stand").set_defaults(command=_status)
    ending = commands.add_parser("unpair", help="give the key back and forget it")
    ending.add_argument("--forget", action="store_true", help="forget it here without telling the server")
    ending.set_defaults(command=_unpair)
    return parser
