"""One run of pytest: its output as it comes, and what its report says in the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .logs import Lines
from .steps import CHECKOUT, Outcome

CLOSING_LINE = re.compile(
    r"\d+ (?:passed|failed|error|errors|skipped|deselected|xfailed|warnings?)\b.* in [\d.]+ ?s"
)
NO_TESTS = 5  # pytest's exit status for it


@dataclass
class PytestReport:
    """What one run of pytest reported. `left_out`: the reason of each skip, with how many tests it took."""

    outcome: Outcome
    closing_line: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def run(
    name: str,
    arguments: list[str],
    environment: Mapping[str, str],
    show: Callable[[str], None],
    cwd: Path = CHECKOUT,
) -> PytestReport:
    """Run pytest, give what it writes to `show` as it comes, and read its report."""
    report_file = CHECKOUT / "artifacts" / f"{name.replace(' ', '-')}.xml"
    report_file.parent.mkdir(exist_ok=True)
    report_file.unlink(missing_ok=True)
    began = time.monotonic()
    lines, closing_line = Lines(), ""
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            str(CHECKOUT / "pyproject.toml"),
            f"--junitxml={report_file}",
            *arguments,
        ],
        cwd=cwd,
        env={**inherited(), **environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 65536):
            show(chunk.decode(errors="replace"))
            matching = [line for line in lines.feed(chunk) if CLOSING_LINE.search(line)]
            closing_line = matching[-1].strip() if matching else closing_line
    outcome = Outcome(name, process.returncode, time.monotonic() - began)
    return read_report(PytestReport(outcome, closing_line), report_file)


def inherited() -> dict[str, str]:
    """The surroundings, without the wish to keep no compiled module: each worker would compile every test file for itself."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def read_report(report: PytestReport, file: Path) -> PytestReport:
    """Fill in the counts from pytest's XML report. A run that ended without one keeps zeros, and its exit status."""
    try:
        suites = ElementTree.parse(file).getroot().iter("testsuite")  # noqa: S314 - written by our own pytest
    except (OSError, ElementTree.ParseError):
        return report
    for suite in suites:
        total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        report.passed += total - skipped - failed
        report.failed += failed
        report.skipped += skipped
        report.left_out.update(skip.get("message") or "no reason given" for skip in suite.iter("skipped"))
    return report
