"""`--help` of every command in `bin/`, and what is wrong with its arguments, is told at once: nothing has to be installed for it."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

from openagents_site.launcher.arguments import ONLY_ARGUMENTS

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


WRONG = (
    "bench", "bench nope", "bench longrun --minutes x", "bench longrun --minutes 0", "bench runs --minutes 3",
    "faults extra", "faults --minutes x", "faults --minutes -1", "faults --minutes nan", "faults --seed x",
    "fuzz-api extra", "fuzz-api --minutes -1", "test --lint tests/runs",
    "up extra", "up --once --no-demo", "up --port abc", "up --port 0", "up --port 99999", "up --port=", "up --port=\u00b2",
)  # fmt: skip


@pytest.mark.parametrize("line", WRONG, ids=str)
def test_wrong_arguments_are_refused_where_no_package_is(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, *arguments = line.split(" ")
    command = [sys.executable, "-S", "-m", *programs(monkeypatch)[name], *arguments]

    told = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60)

    assert told.returncode == 2, told.stderr
    assert f"bin/{name}: error: " in told.stderr


@pytest.mark.parametrize(
    "line", ["bench longrun --minutes 3 --json", "faults --minutes 0 --seed 3", "fuzz-api", "test -k x", "up"]
)
def test_good_arguments_are_asked_about_and_nothing_is_done(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *arguments = line.split(" ")
    command = [sys.executable, "-S", "-m", *programs(monkeypatch)[name], *arguments]
    monkeypatch.setenv(ONLY_ARGUMENTS, "1")

    told = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60)

    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nonsense"], "the date is written YYYY-MM-DD, not 'nonsense'"),
        ([""], "the date is written YYYY-MM-DD, not ''"),
        (["2026-02-30"], "there is no date 2026-02-30"),
        (["2999-01-01"], "2999-01-01 is in the future"),
        (["2026-01-01", "2026-01-02"], "one argument at most, the date: bin/lock [YYYY-MM-DD]"),
    ],
    ids=["no date", "empty", "no such day", "future", "two"],
)
def test_the_lock_refuses_what_is_no_date_before_it_installs_its_tool(arguments: list[str], why: str) -> None:
    told = subprocess.run(
        [CHECKOUT / "bin" / "lock", *arguments], capture_output=True, text=True, check=False, timeout=60
    )

    assert (told.returncode, told.stdout, told.stderr) == (2, "", f"bin/lock: {why}.\n")


def test_the_lock_answers_help() -> None:
    told = subprocess.run(
        [CHECKOUT / "bin" / "lock", "--help"], capture_output=True, text=True, check=False, timeout=60
    )

    assert told.returncode == 0
    assert "usage: bin/lock [YYYY-MM-DD]" in told.stdout
