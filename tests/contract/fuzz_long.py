"""`bin/fuzz-api [--minutes N] [--seed N]`: the fuzzer of the API's tests for longer, on an installation of its own.

Every caller in turn: an owner, the owner's reading token, staff, and nobody. Exit status 1 if a request broke the contract; what
it was is printed with the seed that finds it again.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from openagents_site.launcher.arguments import end_if_only_asked, minutes

if TYPE_CHECKING:
    from tests.contract import fuzzing
    from tests.contract.installation import Running

CALLERS = ("owner", "reader", "staff", None)
EXAMPLES = 100


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bin/fuzz-api", description="Ask the API what nobody would.")
    parser.add_argument("--minutes", type=minutes, default=10.0, help="for all callers together (default 10)")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(2**31), help="default: another every time"
    )
    given = parser.parse_args(arguments)
    end_if_only_asked()
    from benchmarks.database import throwaway_database  # `--help` is answered before anything is installed
    from tests.contract import tour
    from tests.contract.installation import database_of_this_process, running

    with throwaway_database(), running(database_of_this_process()) as server:
        exchanges = tour.take(server)
        with without_limits(server):
            seconds = max(1, int(given.minutes * 60 / len(CALLERS)))
            return max(_fuzzed(server, exchanges, caller, given.seed, seconds) for caller in CALLERS)


def _fuzzed(
    server: Running, exchanges: fuzzing.Exchanges, caller: str | None, seed: int, seconds: int
) -> int:
    from tests.contract import fuzzing

    with tempfile.TemporaryDirectory(prefix="fuzz-api-") as folder:
        ended = fuzzing.fuzz(
            server, exchanges, caller, Path(folder), seed=seed, examples=EXAMPLES, seconds=seconds
        )
    print(f"--- {caller or 'nobody'}, seed {seed}\n{ended.stdout}{ended.stderr}", flush=True)
    return int(ended.returncode != 0)


class without_limits:
    """Nobody's minute is ever used up: most requests would be refused by the limits and try nothing."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._stopping = threading.Event()
        self._clearing = threading.Thread(target=self._clear, daemon=True)

    def __enter__(self) -> None:
        self._clearing.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._clearing.join()

    def _clear(self) -> None:
        while not self._stopping.wait(0.5):
            self._server.execute("delete from rate_windows")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
