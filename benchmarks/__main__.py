"""`bin/bench NAME [--json]`: runs `main(json=...)` of `benchmarks/NAME.py`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__init__", "__main__", "results"}


def names() -> list[str]:
    """Every module of this folder that has a `main`."""
    found = sorted(
        path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS
    )
    return [name for name in found if "\ndef main(" in Path(__file__).with_name(f"{name}.py").read_text()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bin/bench", description="Measure, beside a baseline of the same run."
    )
    parser.add_argument("name", choices=names(), metavar="NAME", help=", ".join(names()))
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    given = parser.parse_args(arguments)
    importlib.import_module(f"benchmarks.{given.name}").main(json=given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
