"""`bin/bench NAME [--json]`: runs `main(json=...)` of `benchmarks/NAME.py`; `--minutes` is for those that take as long as they are told."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path

from openagents_site.launcher.arguments import end_if_only_asked
from openagents_site.launcher.arguments import minutes as number_of_minutes

NOT_BENCHMARKS = {"__init__", "__main__", "results"}


def names() -> list[str]:
    """Every module of this folder that has a `main`."""
    found = sorted(
        path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS
    )
    return [name for name in found if _main_of(name)]


def _main_of(name: str) -> str:
    """The line that begins a benchmark's `main`, read and not imported: nothing may be installed yet."""
    found = re.search(
        r"^def main\(.*?\) *->", Path(__file__).with_name(f"{name}.py").read_text(), re.M | re.S
    )
    return found.group() if found else ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bin/bench", description="Measure, beside a baseline of the same run."
    )
    parser.add_argument("name", choices=names(), metavar="NAME", help=", ".join(names()))
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--minutes", type=minutes, help="how long, for one that goes on until then (longrun)")
    given = parser.parse_args(arguments)
    if given.minutes is not None and "minutes" not in _main_of(given.name):
        parser.error(f"{given.name} takes the time it needs, and no --minutes")
    end_if_only_asked()
    measure = importlib.import_module(f"benchmarks.{given.name}").main
    if given.minutes is None:
        return measure(json=given.json) or 0
    return measure(json=given.json, minutes=given.minutes) or 0


def minutes(text: str) -> float:
    """A time above none and below a week."""
    value = number_of_minutes(text)
    if not 0 < value < 7 * 24 * 60:
        raise argparse.ArgumentTypeError(f"must be above 0 and below a week of minutes, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
