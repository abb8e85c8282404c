"""What a measurement found, and its two forms: a table for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One figure. `baseline` is the same figure of the plain way, in the same unit; None where there is none.

    `target` says in words what the figure should be.
    """

    case: str
    value: float
    unit: str
    baseline: float | None = None
    target: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times the baseline is the figure; above 1 is better where less is better."""
        if self.baseline is None or not self.value:
            return None
        return round(self.baseline / self.value, 2)


def report(name: str, rows: Sequence[Row], *, as_json: bool) -> None:
    """Print the rows in one of the two forms."""
    print(as_object(name, rows) if as_json else as_table(name, rows))


def as_object(name: str, rows: Sequence[Row]) -> str:
    shown = [
        {key: value for key, value in asdict(row).items() if key != "target"} | {"ratio": row.ratio}
        for row in rows
    ]
    return json.dumps({"name": name, "machine": machine(), "rows": shown})


def as_table(name: str, rows: Sequence[Row]) -> str:
    """A Markdown table, so that it can be kept in the documentation as it is."""
    lines = [
        f"{name}: {machine()}",
        "",
        "| case | value | baseline | ratio | target |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        baseline = "" if row.baseline is None else f"{shown(row.baseline)} {row.unit}"
        ratio = "" if row.ratio is None else f"{shown(row.ratio)}"
        lines.append(f"| {row.case} | {shown(row.value)} {row.unit} | {baseline} | {ratio} | {row.target} |")
    return "\n".join(lines)


def shown(number: float) -> str:
    """Three figures that matter."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie, by nearest rank. Raises for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def machine() -> str:
    """Cores, processor, memory, system: what figures depend on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    system = f"{platform.system()} {platform.release()}"
    return f"{os.cpu_count()} cores {_processor()}, {memory:.0f} GiB, {system}, Python {platform.python_version()}"


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()
