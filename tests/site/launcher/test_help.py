"""`--help` of every command in `bin/` is answered at once: nothing has to be installed for it."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

from .conftest import CHECKOUT

NAMES = ("bench", "faults", "fuzz-api", "test", "up")


def programs(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, ...]]:
    folder = CHECKOUT / "bin" / "bootstrap"
    monkeypatch.syspath_prepend(str(folder))
    return dict(runpy.run_path(str(folder / "__main__.py"), run_name="read")["PROGRAMS"])


def test_every_command_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuple(sorted(programs(monkeypatch))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_help_needs_no_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-S", "-m", *programs(monkeypatch)[name], "--help"]  # -S: without any package

    told = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60)

    assert told.returncode == 0, told.stderr
    assert f"bin/{name}" in told.stdout
