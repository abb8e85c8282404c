"""The fault points of the product, read from its sources. `python -m tests.faults.fault_points` prints the page that lists them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "reference" / "fault-points.md"
DRIVEN = ("boxes", "forge", "runs", "work")
"""The apps whose points a worker may meet."""
APPS = (*DRIVEN, "openagents_site")
_DECLARED = re.compile(r'declare\(\s*"([a-z_.]+)",\s*"([^"]+)"')
_HEAD = """# Fault points

Named places between what was committed and what was called, where a test lets a process raise, sleep or die. In service they do nothing.
A test arms one in its own process (`base.faults.armed`) or in one that it starts: `FAULT_POINTS="boxes.create.called=kill"`.
`bin/faults` starts workers that die at one of them.

| point | where that is |
|---|---|
"""


def declared(apps: Sequence[str] = APPS) -> dict[str, str]:
    """Every point of these apps with its meaning, by name."""
    sources = (file.read_text() for app in apps for file in sorted((CHECKOUT / app).rglob("*.py")))
    return dict(sorted(pair for source in sources for pair in _DECLARED.findall(source)))


def page() -> str:
    """The page as it should be."""
    return _HEAD + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in declared().items())


if __name__ == "__main__":
    PAGE.write_text(page())
