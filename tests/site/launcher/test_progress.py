"""What takes a while shows that it moves, and what moves."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from django.core.management.base import OutputWrapper

from openagents_site.launcher import checks
from openagents_site.launcher.migrating import CountedMigrate
from openagents_site.launcher.progress import Progress
from openagents_site.launcher.pytest_run import PytestReport
from openagents_site.launcher.steps import Outcome
from openagents_site.launcher.terminal import Terminal
from tests.waiting import eventually

from .conftest import CHECKOUT


class Screen:
    """Keeps what it was told."""

    def __init__(self, *, moves: bool) -> None:
        self.moves = moves
        self.said: list[str] = []
        self.moved: list[str] = []

    def say(self, text: str, style: str = "") -> None:
        self.said.append(text)

    def move(self, text: str) -> None:
        self.moved.append(text)


@pytest.mark.parametrize("moves", [True, False], ids=["terminal", "file"])
def test_a_step_shows_what_it_is_at_while_it_lasts(moves: bool) -> None:
    screen = Screen(moves=moves)
    shown = screen.moved if moves else screen.said

    with Progress("Database", screen, plain_seconds=0.01) as progress:
        progress.note = "migration 3 of 40: boxes.0002"
        eventually(lambda: any("Database: migration 3 of 40: boxes.0002 (" in line for line in shown))

    assert screen.said[0] == "Database ..."
    assert screen.said[-1].startswith("Database: ready after ")


def test_a_step_that_failed_says_so_and_ticks_no_more() -> None:
    screen = Screen(moves=False)

    with pytest.raises(ValueError), Progress("Database", screen, plain_seconds=0.01):
        raise ValueError

    assert screen.said[-1].startswith("Database: failed after ")


def test_each_migration_is_counted_as_it_begins() -> None:
    command, output = CountedMigrate(), io.StringIO()
    command.stdout = OutputWrapper(output)
    command.take_note(plan=["one", "two"])

    for action in ("apply_start", "apply_success", "apply_start"):
        command.migration_progress_callback(action, "boxes.0001_initial")

    assert output.getvalue().splitlines() == [
        "migration 1 of 2: boxes.0001_initial", "migration 2 of 2: boxes.0001_initial"
    ]  # fmt: skip


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_that_moves_is_taken_away_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = FakeTerminal()
    terminal = Terminal(stream)

    terminal.move("one")
    terminal.move("two")
    terminal.say("done")
    terminal.close()

    assert stream.getvalue() == "one\r\033[Ktwo\r\033[Kdone\n"


def test_a_check_that_runs_is_shown_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    screen = checks.Screen(moves=True)

    screen.move("types (1 s)")
    screen.say("types: ok (1.2 s)")

    assert capsys.readouterr().out == "types (1 s)\r\033[Ktypes: ok (1.2 s)\n"


def test_after_tests_alone_nothing_is_said_twice(capsys: pytest.CaptureFixture[str]) -> None:
    report = PytestReport(Outcome("tests", 0, 1.0), "== 3 passed in 1.00s ==", passed=3)
    broken = PytestReport(Outcome("tests", 3, 1.0))

    assert checks.summary_of_tests(report) == 0
    assert capsys.readouterr().out == ""
    assert checks.summary_of_tests(broken) == 3
    assert capsys.readouterr().out == "tests: pytest ended with status 3\n"


def test_unpacking_names_the_package_that_it_is_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT / "bin" / "bootstrap"))
    for name in ("layout", "progress"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import progress

    monkeypatch.setattr(progress, "VENV", tmp_path)
    shown = progress.Progress("Installing")

    shown.read_pip("Installing collected packages: one, two, three")
    first = shown.detail
    done = tmp_path / "lib" / "python3" / "site-packages" / "one-1.0.dist-info"
    done.mkdir(parents=True)
    (done / "RECORD").touch()
    shown.tick("")

    assert (first, shown.detail) == (": unpacking 1 of 3, one", ": unpacking 2 of 3, two")
    assert "unpacking 1 of 3, one" in capsys.readouterr().out
