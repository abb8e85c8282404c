"""What an operator can mend is said in one sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

ROOT = Path(__file__).resolve().parent.parent.parent


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def state() -> Iterator[str]:
    """A state folder that the server's account can reach, which pytest's own folders are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield f"{folder}/state"


def test_a_database_that_does_not_run_is_named_with_the_command_that_starts_it(state):
    result = manage("create_token", "nobody", STATE_DIR=state)

    assert result.returncode == 1
    assert "bin/up" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_wrong_setting_is_one_line(state):
    result = manage("check", STATE_DIR=state, BOX_TTL_SECONDS="soon")

    assert (result.returncode, result.stderr.strip()) == (
        1,
        "manage.py: BOX_TTL_SECONDS must be a whole number, not 'soon'",
    )


def test_the_systems_python_hands_over_to_the_installed_one(tmp_path):
    """As `./manage.py` is called by whoever has not activated anything; `-S` hides what is installed."""
    shutil.copy(ROOT / "manage.py", tmp_path)
    nothing = subprocess.run(
        [sys.executable, "-S", "-E", "manage.py", "check"], cwd=tmp_path, capture_output=True, text=True
    )
    assert nothing.returncode == 1
    assert nothing.stderr.strip() == "manage.py: nothing is installed yet: run bin/up or bin/test first"

    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "installed: $*"\n')
    python.chmod(0o755)
    handed = subprocess.run(
        [sys.executable, "-S", "-E", "manage.py", "check", "--deploy"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert handed.stdout.strip() == "installed: manage.py check --deploy"


def test_help_names_our_commands_first_each_with_a_sentence(state):
    for asked in ([], ["help"], ["--help"]):
        result = manage(*asked, STATE_DIR=state)

        assert result.returncode == 0, result.stderr
        ours, others = result.stdout.split("Of Django and other packages")
        assert [line for line in ours.splitlines() if line.startswith("  ") and not line.endswith(".")] == []
        assert re.search(r"^  runs +Look at runs and act on them\.$", ours, re.M)
        assert re.search(r"^  doctor +\S.*", ours, re.M)
        assert "  migrate" not in ours
        assert "migrate" in others


def test_what_a_command_refuses_begins_like_every_other_error(state, tmp_path):
    result = manage("restore", str(tmp_path), STATE_DIR=state)

    assert result.returncode == 1
    assert re.fullmatch("manage.py: .*\n", result.stderr)


def test_a_doctor_without_a_database_shows_its_findings_alone(state):
    result = manage("doctor", STATE_DIR=state)

    assert (result.returncode, result.stderr) == (1, "")
    assert "BAD  database: " in result.stdout


@pytest.mark.parametrize(
    "command", [["runs", "list"], ["jobs", "list"], ["leaks", "list"], ["fleet", "--once"]]
)
@pytest.mark.parametrize("limit", ["-1", "0", "x", "1.5"])
def test_a_limit_that_is_none_is_refused(command, limit):
    with pytest.raises(CommandError, match="whole number, 1 or more"):
        call_command(*command, f"--limit={limit}")
