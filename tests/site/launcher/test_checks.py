"""What `bin/test` reports: faithful exit status, counts, what was left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from openagents_site.launcher import checks, peers, pytest_run
from openagents_site.launcher.pytest_run import PytestReport
from openagents_site.launcher.steps import CHECKOUT, Outcome, Step, run

TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert False
@pytest.mark.skip(reason="needs Chromium, which is not installed")
def test_page(): pass
"""


def report(status: int, passed: int = 0, failed: int = 0) -> PytestReport:
    return PytestReport(Outcome("tests", status, 1.0), "== closing ==", passed, failed)


@pytest.fixture
def ran(tmp_path: Path) -> PytestReport:
    """A real run of pytest with one test that passes, one that fails and one that is left out."""
    (tmp_path / "test_three.py").write_text(TESTS)
    arguments = ["--noconftest", "-p", "no:cacheprovider", str(tmp_path)]
    return pytest_run.run("three of each", arguments, {}, lambda line: None)


@pytest.mark.system
def test_it_counts_what_pytest_reported(ran: PytestReport) -> None:
    assert (ran.passed, ran.failed, ran.skipped) == (1, 1, 1)
    assert ran.outcome.status == 1
    assert ran.left_out == Counter({"needs Chromium, which is not installed": 1})
    assert "1 failed, 1 passed, 1 skipped" in ran.closing_line


def test_it_finds_the_files_of_system_tests_by_their_mark(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "test_system.py").write_text("@pytest.mark.system\ndef test_it(): pass\n")
    (tmp_path / "test_other.py").write_text("def test_the_system(): pass\n")

    assert checks.system_files(tmp_path) == [str(tmp_path / "deep" / "test_system.py")]


def test_compiled_test_files_are_kept_for_the_other_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("LANG", "C.UTF-8")

    assert "PYTHONDONTWRITEBYTECODE" not in pytest_run.inherited()
    assert pytest_run.inherited()["LANG"] == "C.UTF-8"


def test_the_summary_ends_with_the_closing_lines_and_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    one = report(1, passed=3, failed=1)
    one.left_out["Skipped: needs busybox, which is not installed"] = 2

    status = checks.summary([Outcome("lint", 0, 0.4)], [one], 1)

    said = capsys.readouterr().out
    assert status == 1
    assert "2 x needs busybox, which is not installed" in said
    assert said.splitlines()[-2:] == ["== closing ==", "3 passed, 1 failed, 0 skipped"]


@pytest.mark.parametrize(
    ("lint_status", "reports", "status"),
    [
        (0, [report(0, passed=1), report(5)], 0),
        (1, [report(0, passed=1)], 1),
        (0, [report(1, passed=1, failed=1)], 1),
        (0, [report(5), report(5)], 1),
        (0, [report(3)], 1),
        (0, [], 0),
    ],
    ids=["no system tests", "lint", "a test", "no test at all", "pytest broke", "lint only"],
)
def test_the_exit_status_is_faithful(lint_status: int, reports: list[PytestReport], status: int) -> None:
    assert checks._status([Outcome("lint", lint_status, 0.1)], reports) == status


@pytest.mark.system
def test_a_step_reports_its_status_and_output() -> None:
    outcome = run(Step("shell", ["sh", "-c", "echo $WORD; exit 3"], {"WORD": "out"}))

    assert (outcome.failed, outcome.status, outcome.output) == (True, 3, "out\n")


def test_only_peers_that_a_test_asks_for_are_installed(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text(
        '@needs("chromium")\ndef test(): ...\n@needs("unheard-of")\ndef test2(): ...\n'
    )
    (tmp_path / "test_more.py").write_text('pytestmark = [\n    needs("playwright"),\n]\n# needs("node")\n')
    (tmp_path / "conftest.py").write_text(
        'SHELLS = ("sh", pytest.param("x", marks=needs("busybox")), "needs(1)")'
    )

    assert peers.asked_for(tmp_path) == {"chromium", "playwright", "busybox"}


def test_the_longest_system_tests_begin_first() -> None:
    files = checks.system_files()

    assert [file.removeprefix(f"{CHECKOUT}/tests/") for file in files[: len(checks.LONG)]] == list(
        checks.LONG
    )
    assert len(files) == len(set(files))


def test_what_our_own_tests_ask_for_is_installed() -> None:
    asked = {"axe", "aimock", "busybox", "chromium", "curl", "playwright"}

    assert peers.asked_for(CHECKOUT / "tests") == asked


def test_without_root_the_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    absent = peers.Peer("Nothing", lambda: False, "no-such-package")
    monkeypatch.setitem(peers.PEERS, "nothing", absent)
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(peers.PeersMissing, match="apt-get install no-such-package"):
        peers.install(["nothing"], tmp_path)


def test_nothing_may_be_left_out_when_everything_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.peers import needs

    monkeypatch.setitem(peers.PEERS, "nothing", peers.Peer("Nothing", lambda: False, "no-such-package"))
    monkeypatch.delenv("TEST_ALL", raising=False)
    skipped = needs("nothing")
    monkeypatch.setenv("TEST_ALL", "1")

    assert skipped.args == (True,)
    with pytest.raises(RuntimeError, match="Nothing is not installed"):
        needs("nothing")


def test_a_line_of_ours_never_ends_up_inside_one_of_pytest(capsys: pytest.CaptureFixture[str]) -> None:
    screen = checks.Screen()

    screen.show("....")
    screen.say("lint: ok")
    screen.show(".. [100%]\n")
    screen.say("done")

    assert capsys.readouterr().out == "....\nlint: ok\n.. [100%]\ndone\n"
