"""The checks of `bin/test` that run no test, each one command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
# What an operator of a public installation would set. Nothing listens there: these checks look at settings only.
PRODUCTION = {
    "DATABASE_URL": "postgres://app:unused@127.0.0.1:1/app",
    "SECRET_KEY": "only-for-the-check-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKL",
    "PUBLIC_BASE_URL": "https://boxes.example.org",
    "BOX_API_BASE_URL": "https://provider.example.org/api/box/v1",
    "BOX_API_KEY": "only-for-the-check",
    "DEBUG": "false",
}


@dataclass(frozen=True)
class Step:
    """One check. `environment` is added to ours."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a step. `output` is shown if it failed."""

    name: str
    status: int
    seconds: float
    output: str = ""

    @property
    def failed(self) -> bool:
        return self.status != 0


def _module(name: str, *arguments: str) -> list[str]:
    return [PYTHON, "-m", name, *arguments]


def _manage(*arguments: str) -> list[str]:
    return [PYTHON, "manage.py", *arguments]


LINT = (
    Step("format", _module("ruff", "format", "--check", "--quiet", ".")),
    Step("lint", _module("ruff", "check", "--quiet", ".")),
    Step("layers", [str(Path(PYTHON).with_name("lint-imports"))]),
    Step("types", _module("mypy")),
    Step(
        "types of bin",
        _module("mypy", "--strict", "--config-file=", "bin/bootstrap"),
        {"MYPYPATH": "bin/bootstrap"},
    ),
    Step("migrations", _manage("makemigrations", "--check", "--dry-run"), PRODUCTION),
    Step("settings for production", _manage("check", "--deploy", "--fail-level", "WARNING"), PRODUCTION),
    Step(
        "API description",
        _manage("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull),
        PRODUCTION,
    ),
)


def run(step: Step) -> Outcome:
    """Run one check to its end."""
    began = time.monotonic()
    done = subprocess.run(
        step.command,
        cwd=CHECKOUT,
        env={**os.environ, **step.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Outcome(step.name, done.returncode, time.monotonic() - began, done.stdout)
