"""What an operator can mend is said in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
