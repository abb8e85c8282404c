"""`manage.py embedded_postgres`, as an operator types it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from base.embedded_postgres import Cluster

from .conftest import CHECKOUT, SMALL, leave_nothing_running, make_passable_folder

Command = Callable[..., str]


@pytest.fixture
def state_dir(shared_parent: Path) -> Iterator[Path]:
    """A state folder with the session's database in it."""
    folder = make_passable_folder()
    (shared_parent / "pg").rename(folder / "postgres")
    yield folder
    Cluster(folder / "postgres").stop()
    (folder / "postgres").rename(shared_parent / "pg")
    subprocess.run(["rm", "-r", folder], check=True)
    leave_nothing_running(shared_parent)


@pytest.fixture
def command(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command on that folder and returns what it printed."""
    monkeypatch.setenv("STATE_DIR", str(state_dir))
    monkeypatch.delenv("DATABASE_URL", raising=False)

    def run(*arguments: str) -> str:
        output = StringIO()
        call_command("embedded_postgres", *arguments, stdout=output)
        return output.getvalue()

    return run


def test_start_leaves_a_server_running_that_status_sees_and_stop_ends(command, state_dir):
    started, again, seen, ended = command("start"), command("start"), command("status"), command("stop")

    pid = re.search(r"process +(\d+)", seen).group(1)
    assert f"PostgreSQL is running (process {pid}" in started
    assert f"PostgreSQL is already running (process {pid}" in again
    assert re.search(r"state +running\n", seen)
    assert re.search(r"supervisor +process \d+ \(in the background\)\n", seen)
    assert ended == "PostgreSQL is stopped.\n"
    assert Cluster(state_dir / "postgres").status().pid is None


def test_what_does_not_run_is_said_in_one_line(command):
    with pytest.raises(
        CommandError,
        match=r"^PostgreSQL is not running; start it with `manage.py embedded_postgres start`\.$",
    ):
        command("psql")

    assert command("stop") == "PostgreSQL was not running.\n"


def test_status_exits_with_3_if_it_is_not_running(command):
    with pytest.raises(SystemExit) as caught:
        command("status")

    assert caught.value.code == 3


def test_a_server_of_bin_up_is_not_stopped_under_it(command, state_dir):
    cluster = Cluster(state_dir / "postgres", settings=SMALL)
    cluster.start()

    with pytest.raises(CommandError, match=f"belongs to process {os.getpid()}"):
        command("stop")

    assert cluster.status().is_running
    cluster.close()


@pytest.mark.parametrize("action", ["start", "stop", "status", "psql"])
def test_nothing_is_touched_where_another_server_is_named(command, state_dir, action, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://app@db.example/boxes")

    with pytest.raises(CommandError, match=r"^DATABASE_URL is set"):
        command(action)

    assert Cluster(state_dir / "postgres").status().pid is None


def test_a_folder_that_cannot_be_used_is_said_in_one_line(command, state_dir, monkeypatch):
    (state_dir / "file").touch()
    monkeypatch.setenv("STATE_DIR", str(state_dir / "file"))

    with pytest.raises(CommandError, match=f"^The state folder {state_dir / 'file'} is not a folder"):
        command("start")


def test_psql_passes_on_its_arguments_and_its_exit_status(command, state_dir):
    cluster = Cluster(state_dir / "postgres", settings=SMALL)
    cluster.start()

    good = typed(state_dir, "psql", "--", "-Atc", "select current_database()")
    bad = typed(state_dir, "psql", "--", "-c", "nonsense")

    assert (good.returncode, good.stdout) == (0, "openagents_boxes\n")
    assert (bad.returncode, "syntax error" in bad.stderr) == (1, True)
    cluster.close()


def typed(state_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with the product's settings and nothing of the tests'."""
    return subprocess.run(
        [sys.executable, "manage.py", "embedded_postgres", *arguments],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], "STATE_DIR": str(state_dir), "DATABASE_URL": ""},
        capture_output=True,
        text=True,
    )
