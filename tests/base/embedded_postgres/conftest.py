"""Real servers in folders of their own; after each test nothing of them may be left running."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from base.embedded_postgres import Cluster, processes
from base.embedded_postgres.cluster import PR_SET_CHILD_SUBREAPER
from base.embedded_postgres.layout import Layout

CHECKOUT = Path(__file__).resolve().parents[3]
SMALL = {"shared_buffers": "16MB", "max_connections": "20"}
ENDLESS = "sleep 600"


def processes_of(folder: Path) -> list[int]:
    """Everything that lives for the server in `folder`: server, backends, supervisors, starters, initdb."""
    layout = Layout.at(folder)
    return processes.matching(
        lambda arguments: (
            any(str(layout.folder) in part for part in arguments)
            or any(part.startswith(f"postgres: {layout.name}") for part in arguments[:1])
        )
    )


def connect(cluster: Cluster) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(**cluster.connection().parameters(), autocommit=True)


def make_passable_folder() -> Path:
    """A folder that the server's account can get to; pytest's own are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="oab-pg-"))
    folder.chmod(0o711)
    return folder


@pytest.fixture(scope="session")
def shared_parent() -> Iterator[Path]:
    """With one server in it that the tests of this session use one after the other: making one takes a second or two."""
    parent = make_passable_folder()
    cluster = Cluster(parent / "pg", settings=SMALL)
    cluster.start()
    cluster.ensure_database()
    cluster.close()
    yield parent
    shutil.rmtree(parent)


@pytest.fixture
def folder(shared_parent: Path) -> Iterator[Path]:
    """A server with an empty database, stopped before and after. A test puts back what it changes in the files."""
    yield shared_parent / "pg"
    leave_nothing_running(shared_parent)


@pytest.fixture
def bare_folder() -> Iterator[Path]:
    """Where no server has ever run."""
    parent = make_passable_folder()
    yield parent / "pg"
    leave_nothing_running(parent)
    shutil.rmtree(parent)


@pytest.fixture
def endless_recovery(folder: Path) -> Iterator[Callable[[], None]]:
    """Call it, and the next start goes on for ever with `restore_command` set to `ENDLESS`."""
    wish = folder / "data" / "recovery.signal"
    yield wish.touch
    wish.unlink(missing_ok=True)


def leave_nothing_running(parent: Path) -> None:
    """Whatever the test left; an orphan of ours is process 1's business again, as in every other test."""
    Cluster(parent / "pg").stop()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert processes_of(parent) == []


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder, settings=SMALL)
    yield cluster
    cluster.close()


@pytest.fixture
def python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python on a script of ours, with `cluster` for the folder given; it is killed at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, folder: Path) -> subprocess.Popen[str]:
        head = (
            "import sys, time\nfrom pathlib import Path\nfrom base.embedded_postgres import Cluster\n"
            f"cluster = Cluster(Path(sys.argv[1]), settings={SMALL!r})\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", head + script, folder],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes accounts, which only root may")
