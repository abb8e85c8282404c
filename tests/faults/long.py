"""`bin/faults [--minutes N] [--seed S]`: rounds of random trouble, one after the other, each on a new installation.

Ctrl-C and SIGTERM end it early, and nothing of the installation stays behind.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from openagents_site.launcher.arguments import end_if_only_asked, minutes

if TYPE_CHECKING:
    from tests.faults.random_round import Outcome

ENDS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130
ROUND_SECONDS = 60.0
CLIENTS = 6
COMPUTERS = 2  # of so many of the clients
LOGS = Path("artifacts/faults")


class Progress:
    """What is going on: one line that changes on a terminal, else a line each time."""

    def __init__(self, minutes: float) -> None:
        self._began, self._seconds, self._moving = time.monotonic(), minutes * 60, sys.stderr.isatty()
        self.round = ""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_over(self) -> bool:
        return self.elapsed >= self._seconds

    def say(self, text: str) -> None:
        line = f"{_clock(self.elapsed)} of {_clock(self._seconds)}  {self.round}: {text}"
        print(
            f"\r\033[K{line[:118]}" if self._moving else line,
            end="" if self._moving else "\n",
            file=sys.stderr,
            flush=True,
        )

    def end_line(self) -> None:
        if self._moving:
            print(file=sys.stderr)


def main(arguments: list[str]) -> int:
    """0 if every round held, 1 if one did not, 130 if it was ended early."""
    parser = argparse.ArgumentParser(
        prog="bin/faults",
        description="Put an installation in random trouble, round after round, and look whether every promise holds.",
    )
    parser.add_argument(
        "--minutes",
        type=minutes,
        default=10.0,
        help="begin rounds for so long (default 10; at least one is played)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        help="of the first round; the next are one higher each (default: another every time)",
    )
    parser.add_argument(
        "--logs",
        type=Path,
        default=LOGS,
        help="folder for the logs of rounds that did not hold (%(default)s)",
    )
    given = parser.parse_args(arguments)
    end_if_only_asked()
    seed = random.SystemRandom().randrange(1, 1 << 31) if given.seed is None else given.seed
    progress = Progress(given.minutes)
    outcomes: list[Outcome] = []
    with _ended_once():
        try:
            while not outcomes or not progress.is_over:
                outcomes.append(_round(seed + len(outcomes), progress, given.logs))
        except KeyboardInterrupt:
            progress.end_line()
            print("ended early", flush=True)
            _summary(outcomes)
            return INTERRUPTED
    return _summary(outcomes)


@contextmanager
def _ended_once() -> Iterator[None]:
    """Whoever wants it to end is heard once: what is being cleared away is not left lying by the second time."""
    before = {number: signal.getsignal(number) for number in ENDS}

    def end(*_: object) -> None:
        for number in ENDS:
            signal.signal(number, lambda *_: None)  # a handler, not SIG_IGN, which programs would inherit
        raise KeyboardInterrupt

    for number in ENDS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _round(seed: int, progress: Progress, logs: Path) -> Outcome:
    from tests.faults.invariants import told  # `--help` is answered before anything is installed
    from tests.faults.random_round import Round, endangered_house

    progress.round = f"seed {seed}"
    progress.say("start the installation")
    with endangered_house(seed) as (made, network):
        made.start()
        made.installation.run("manage.py", "setup_schedules")
        made.installation.add("scheduler", "manage.py", "qcluster")
        outcome = Round(made, network, seed, clients=CLIENTS, say=progress.say, computers=COMPUTERS).play(
            ROUND_SECONDS
        )
    progress.end_line()
    counts = ", ".join(f"{count} {what}" for what, count in outcome.counts.items())
    print(f"seed {seed}: {'did not hold' if outcome.broken else 'held'} ({counts})", flush=True)
    if outcome.broken:
        print(told(outcome.broken), flush=True)
        print(f"  again: bin/faults --minutes 0 --seed {seed}", flush=True)
        logs.mkdir(parents=True, exist_ok=True)
        (logs / f"{seed}.log").write_text(outcome.logs)
        print(f"  its logs: {logs / f'{seed}.log'}", flush=True)
    return outcome


def _summary(outcomes: list[Outcome]) -> int:
    failed = [outcome.seed for outcome in outcomes if outcome.broken]
    print(
        f"{len(outcomes)} rounds, {len(outcomes) - len(failed)} held"
        + (f"; seeds that did not: {failed}" if failed else "")
    )
    return int(bool(failed))


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
