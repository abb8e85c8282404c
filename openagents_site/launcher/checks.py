"""`bin/test`: every check and every test, and one summary."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from . import peers, pytest_run, steps
from .options import CheckOptions
from .progress import Progress
from .pytest_run import NO_TESTS, PytestReport
from .steps import CHECKOUT, LINT, Outcome

FEWEST_WORKERS, MOST_WORKERS = 2, 8
LINT_SECONDS = 20.0  # between two lines that say which check is running, where none can move
WORKERS_A_PROCESSOR = 1.5
"""Many a test waits for something. With two, tests of deadlines would meet those of a machine that is too busy."""
SYSTEM_MARK = "mark.system"  # as it is written in a file of tests
LONG = (
    "connector/test_end_to_end.py",
    "system/test_up.py",
    "localbox/runtime/test_as_ordinary_user.py",
    "work/test_end_to_end.py",
    "faults/test_runs_under_kill.py",
    "system/test_up_as_ordinary_user.py",
)
"""The files of system tests that take longest, which begin first: begun last, one would run while nothing else does."""
PEERS_MISSING, INTERRUPTED = 2, 130  # exit statuses


def main(options: CheckOptions) -> int:
    """Run what was asked for. Exit status 0 if nothing failed; for arguments to pytest, its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _main(options)
    except KeyboardInterrupt:
        print("bin/test: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _main(options: CheckOptions) -> int:
    environment = {"TEST_ALL": "1"} if options.everything else {}
    if options.everything:
        try:
            peers.install(peers.asked_for(CHECKOUT / "tests"), CHECKOUT)
        except peers.PeersMissing as reason:
            print(f"bin/test --all: {reason}.", file=sys.stderr)
            return PEERS_MISSING
    if options.pytest:
        say("Only the tests asked for; the other checks run without arguments.")
        report = pytest_run.run("tests", options.pytest, environment, show, _working_folder())
        return summary_of_tests(report)
    _screen.moves = options.lint_only and sys.stdout.isatty()
    lint: list[Outcome] = []
    linting = threading.Thread(target=_run_lint, args=(lint,), name="lint", daemon=True)
    linting.start()
    reports = [] if options.lint_only else _run_tests(environment)
    linting.join()
    return summary(lint, reports, _status(lint, reports))


class Screen:
    """Standard output for two writers: whole lines of ours never end up inside a line that pytest is still writing.

    `moves`: whether a line may be written over, which needs a terminal without another writer.
    """

    def __init__(self, *, moves: bool = False) -> None:
        self.moves = moves
        self._lock = threading.Lock()
        self._inside_a_line = False
        self._has_moving_line = False

    def say(self, line: str = "", style: str = "") -> None:
        """One line."""
        with self._lock:
            print(self._clear() + ("\n" if self._inside_a_line else "") + line, flush=True)
            self._inside_a_line = False

    def move(self, line: str) -> None:
        """One line in place of the one that moved last."""
        with self._lock:
            print(self._clear() + line[: shutil.get_terminal_size().columns - 1], end="", flush=True)
            self._has_moving_line = True

    def _clear(self) -> str:
        had, self._has_moving_line = self._has_moving_line, False
        return "\r\033[K" if had else ""

    def show(self, text: str) -> None:
        """A piece of another program's output."""
        with self._lock:
            print(text, end="", flush=True)
            self._inside_a_line = not text.endswith("\n")


_screen = Screen()
say, show = _screen.say, _screen.show


def _run_lint(outcomes: list[Outcome]) -> None:
    for step in LINT:
        progress = Progress(step.name, _screen, plain_seconds=LINT_SECONDS)
        progress.start()
        outcome = steps.run(step)
        progress.stop()
        outcomes.append(outcome)
        say(f"{outcome.name}: {'FAILED' if outcome.failed else 'ok'} ({outcome.seconds:.1f} s)")
        if outcome.failed:
            say(outcome.output.rstrip())


def _run_tests(environment: dict[str, str]) -> list[PytestReport]:
    """The fast tests first: what they find is known while the slow ones run, whose files share what they set up. Not both at
    once: some look for processes by what they were started with, and others start the same as another user."""
    at_once = ["-n", str(workers()), "--dist"]
    return [
        pytest_run.run("tests", ["-m", "not system", *at_once, "worksteal"], environment, show),
        pytest_run.run(
            "system tests",
            ["-m", "system", *at_once, "loadfile", "--no-loadscope-reorder", *system_files()],
            environment,
            show,
        ),
    ]


def system_files(tests: Path = CHECKOUT / "tests") -> list[str]:
    """The files that have such a test, the long ones first, so that nobody reads three hundred others for them; the tests see
    that none is missing."""
    found = [str(file) for file in sorted(tests.rglob("test_*.py")) if SYSTEM_MARK in file.read_text()]
    first = [str(tests / name) for name in LONG if str(tests / name) in found]
    return [*first, *(file for file in found if file not in first)]


def workers() -> int:
    """How many tests run at once on this machine."""
    return max(FEWEST_WORKERS, min(MOST_WORKERS, int(WORKERS_A_PROCESSOR * len(os.sched_getaffinity(0)))))


def _status(lint: Sequence[Outcome], reports: Sequence[PytestReport]) -> int:
    failed = any(outcome.failed for outcome in lint)
    bad = [report for report in reports if report.outcome.status not in {0, NO_TESTS}]
    return int(failed or bool(bad) or (bool(reports) and not any(report.passed for report in reports)))


def summary(lint: Sequence[Outcome], reports: Sequence[PytestReport], status: int) -> int:
    """Print what was done, what was left out and why, and pytest's own closing lines. Returns `status`."""
    say()
    for outcome in [*lint, *(report.outcome for report in reports)]:
        verdict = "FAILED" if outcome.status not in {0, NO_TESTS} else "ok"
        say(f"  {outcome.name:<24} {verdict:<7} {outcome.seconds:7.1f} s")
    _say_left_out(reports)
    say()
    failed = [outcome.name for outcome in lint if outcome.failed]
    if failed:
        say(f"{len(failed)} of {len(lint)} checks failed: {', '.join(failed)}")
    elif lint:
        say("all checks are good" if status == 0 else "all checks but the tests are good")
    for report in reports:
        say(report.closing_line or _without_closing_line(report))
    if reports:
        total = [sum(getattr(report, name) for report in reports) for name in ("passed", "failed", "skipped")]
        say("{} passed, {} failed, {} skipped".format(*total))
    return status


def summary_of_tests(report: PytestReport) -> int:
    """After a run of tests alone, whose closing line pytest has just written. Returns pytest's status."""
    _say_left_out([report])
    if not report.closing_line:
        say(_without_closing_line(report))
    return report.outcome.status


def _say_left_out(reports: Sequence[PytestReport]) -> None:
    left_out: Counter[str] = sum((report.left_out for report in reports), Counter())
    if left_out:
        say("\nLeft out (bin/test --all installs what is missing and leaves nothing out):")
    for reason, count in left_out.most_common():
        say(f"  {count} x {reason.removeprefix('Skipped: ')}")


def _without_closing_line(report: PytestReport) -> str:
    return f"{report.outcome.name}: pytest ended with status {report.outcome.status}"


def _working_folder() -> Path:
    """Where the command was called, if that is inside the checkout: paths on the command line are meant from there."""
    called = Path(os.environ.get("OPENAGENTS_INVOKED_FROM", CHECKOUT))
    return called if called.is_relative_to(CHECKOUT) else CHECKOUT
