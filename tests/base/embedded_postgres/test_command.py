"""`manage.py embedded_postgres`, as an operator types it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from base.embedded_postgres import Cluster

from .conftest import CHECKOUT, SMALL, leave_nothing_running, make_passable_folder

Command = Callable[..., subprocess.CompletedProcess[str]]
NOT_RUNNING = "PostgreSQL is not running; start it with `manage.py embedded_postgres start`."


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
def command(state_dir: Path) -> Command:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}

    def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", "embedded_postgres", *arguments],
            cwd=CHECKOUT,
            env={**environment, "STATE_DIR": str(state_dir), **extra},
            capture_output=True,
            text=True,
        )

    return run


def test_start_leaves_a_server_running_that_status_sees_and_stop_ends(command, state_dir):
    started, again, seen = command("start"), command("start"), command("status")
    ended, after = command("stop"), command("status")

    pid = next(line.split()[1] for line in seen.stdout.splitlines() if line.startswith("process"))
    assert f"PostgreSQL is running (process {pid}" in started.stdout
    assert f"PostgreSQL is already running (process {pid}" in again.stdout
    assert (seen.returncode, "running" in seen.stdout, "(in the background)" in seen.stdout) == (
        0,
        True,
        True,
    )
    assert ended.stdout == "PostgreSQL is stopped.\n"
    assert (after.returncode, "stopped" in after.stdout) == (3, True)
    assert Cluster(state_dir / "postgres").status().pid is None


def test_psql_passes_on_its_arguments_and_its_exit_status(command, state_dir):
    cluster = Cluster(state_dir / "postgres", settings=SMALL)
    cluster.start()

    good = command("psql", "--", "-Atc", "select current_database()")
    bad = command("psql", "--", "-c", "nonsense")

    assert (good.returncode, good.stdout) == (0, "openagents_boxes\n")
    assert (bad.returncode, "syntax error" in bad.stderr) == (1, True)
    cluster.close()


def test_what_does_not_run_is_said_in_one_line(command):
    stopped, psql = command("stop"), command("psql")

    assert (stopped.returncode, stopped.stdout) == (0, "PostgreSQL was not running.\n")
    assert (psql.returncode, psql.stderr) == (1, f"CommandError: {NOT_RUNNING}\n")


def test_a_server_of_bin_up_is_not_stopped_under_it(command, state_dir):
    cluster = Cluster(state_dir / "postgres", settings=SMALL)
    cluster.start()

    refused = command("stop")

    assert refused.returncode == 1
    assert f"belongs to process {os.getpid()}" in refused.stderr
    assert cluster.status().is_running
    cluster.close()


@pytest.mark.parametrize("action", ["start", "stop"])
def test_nothing_is_touched_where_another_server_is_named(command, state_dir, action):
    done = command(action, DATABASE_URL="postgres://app@db.example/boxes", SECRET_KEY="k" * 50)

    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: DATABASE_URL is set")
    assert Cluster(state_dir / "postgres").status().pid is None
