"""A supervisor to be watched and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openagents_site.launcher import records
from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 100.0  # only a failure waits for so long


class House:
    """A folder with a Procfile, and the supervisors that were started for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.supervisors: list[subprocess.Popen[bytes]] = []

    def starts(self, procfile: str, *arguments: str) -> subprocess.Popen[bytes]:
        (self.folder / "Procfile").write_text(procfile)
        with (self.folder / "terminal").open("ab") as terminal:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "tests.site.launcher.keeper", str(self.folder), *arguments],
                cwd=CHECKOUT,
                stdout=terminal,
                stderr=terminal,
            )
        self.supervisors.append(supervisor)
        return supervisor

    def said(self) -> str:
        return (self.folder / "terminal").read_text()

    def log(self, name: str) -> str:
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def pid(self, name: str, other_than: int = 0) -> int:
        """The pid of the running process, once there is one (other than the one given)."""

        def running() -> int:
            group = records.read(self.folder / "run").get(name)
            return (
                group.leader.pid
                if group and group.leader.is_alive() and group.leader.pid != other_than
                else 0
            )

        pid = eventually(running)
        assert isinstance(pid, int)
        return pid

    def groups(self) -> dict[str, list[int]]:
        return {name: group.members() for name, group in records.read(self.folder / "run").items()}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    for supervisor in house.supervisors:
        supervisor.kill()
        supervisor.wait()
    for group in records.read(tmp_path / "run").values():
        group.signal(signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return " Z " not in Path(f"/proc/{pid}/stat").read_text(errors="replace")
