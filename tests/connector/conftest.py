"""A whole installation and a connector, each of real processes, on the database of the test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from django.db import connection

from tests.faults.installation import Api, Installation
from tests.localbox.server import LocalboxServer
from tests.postgres import ensure_test_cluster
from tests.waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
ECHO = f"{sys.executable} {Path(__file__).with_name('echo_agent.py')}"
ENDED = {"completed", "failed", "interrupted", "budget_exhausted", "cancelled"}


def lives(pid: int) -> bool:
    """Whether a process has not ended yet. What nobody has heard the end of has ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class Connector:
    """The program on a computer of its own: its state, its root, and whoever owns it."""

    url: str
    api: Api
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    machine: dict[str, Any] = field(default_factory=dict)
    surroundings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self.state, self.root, self.sessions):
            folder.mkdir(parents=True)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def root(self) -> Path:
        return (self.folder / "root").resolve()

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    @property
    def log(self) -> str:
        file = self.folder / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "connector", "--state-dir", str(self.state), *arguments]

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return kept | self.surroundings | {"ECHO_SESSIONS": str(self.sessions), "PYTHONPATH": str(REPOSITORY)}

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            text=True,
            capture_output=True,
            timeout=100,
        )

    def pair(self, tier: str = "curated", agent: str = f"echo={ECHO}", *more: str) -> dict[str, Any]:
        """Pair by the real program and the real API."""
        asking = subprocess.Popen(
            self.command("pair", "--server", self.url, "--root", str(self.root), "--tier", tier, "--agent", agent, *more),
            cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert asking.stdout is not None
        code = re.fullmatch(r"Code: (\w{4}-\w{4})\n", asking.stdout.readline())
        assert code, asking.communicate(timeout=60)
        self.machine = self.api.insist("POST", "pairings/approve", json={"code": code[1]})
        _, errors = asking.communicate(timeout=60)
        assert asking.returncode == 0, errors
        return self.machine

    def start(self) -> None:
        """Run it in the background, and wait until the server sees it."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command("run"), cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def await_online(self) -> None:
        eventually(lambda: self.api("GET", f"machines/{self.machine['id']}").json()["online"])

    def kill9(self) -> None:
        """Kill the connector itself; what it started lives on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def delegate(self, *lines: str, cwd: str | None = None, **more: Any) -> dict[str, Any]:
        """A delegation to the echo agent, by the API."""
        body = {
            "kind": "delegation",
            "machine": self.machine["id"],
            "agent_id": "echo",
            "prompt": "\n".join(lines),
        }
        answer = self.api("POST", "jobs", json=body | {"cwd": cwd or str(self.root)} | more)
        assert answer.status_code == 202, answer.text
        return answer.json()

    def job(self, job: dict[str, Any]) -> dict[str, Any]:
        return self.api.insist("GET", f"jobs/{job['id']}")

    def await_session(self, job: dict[str, Any]) -> str:
        """Until the agent has a session for the job; its id."""
        return eventually(lambda: (self.job(job)["delegation"]["on_machine"] or {}).get("session_id"))

    def end_of(self, job: dict[str, Any], seconds: float = 100) -> dict[str, Any]:
        """The job once it has ended."""
        eventually(lambda: self.job(job)["status"] in ENDED, seconds)
        return self.job(job)

    def await_file(self, name: str) -> str:
        file = self.root / name
        eventually(lambda: file.exists() and file.read_text() != "")
        return file.read_text()

    def await_done(self, lines: int) -> None:
        """Until the agent has kept that it did so many lines: killed before that, it does the last one again."""
        eventually(
            lambda: any(json.loads(f.read_text())["done"] >= lines for f in self.sessions.glob("*.json"))
        )

    def processes(self) -> list[psutil.Process]:
        """Everything that it started and that still lives, itself included."""
        found = []
        for process in psutil.process_iter():
            try:
                if (
                    process.environ().get("ECHO_SESSIONS") == str(self.sessions)
                    and process.status() != "zombie"
                ):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def journal(self, query: str) -> list[Any]:
        import sqlite3

        link = sqlite3.connect(self.state / "journal.sqlite3")
        try:
            return link.execute(query).fetchall()
        finally:
            link.close()

    def clear_away(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self.process is not None:
            self.process.wait(30)


@pytest.fixture(scope="module")
def house(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Installation]:
    """Web and a worker on a database of their own, a copy of the tests', for all tests of a file; no provider is asked."""
    cluster = ensure_test_cluster()
    name = f"connector_{os.getpid()}"
    with psycopg.connect(**cluster.parameters(), autocommit=True) as link:
        with django_db_blocker.unblock():
            connection.close()  # what somebody uses cannot be copied
            original = connection.settings_dict["NAME"]
        link.execute(f"create database {name} template {original}")
        provider = LocalboxServer(port=9, state_dir=tmp_path_factory.mktemp("provider"))
        with Installation(replace(cluster, dbname=name), provider) as made:
            made.add_web(WEB_THREADS="32")
            made.add_worker()
            made.await_web()
            yield made
        link.execute(f"drop database {name} with (force)")


@pytest.fixture(scope="module")
def tokens(house: Installation) -> list[str]:
    """Tokens of owners who have nothing yet."""
    return [owner.token for owner in house.owners(60, 0)]


@pytest.fixture
def installation(house: Installation) -> Installation:
    """The installation with every part running as it should, whatever the test before has done to it."""
    for name in set(house.parts) - {"web", "worker"}:
        house.parts.pop(name).stop()
    web = house.parts["web"]
    if not web.is_running or "FAULT_POINTS" in web.environment:
        web.stop()
        house.add_web(WEB_THREADS="32")
    house.parts["worker"].ensure()
    house.await_web()
    return house


@pytest.fixture
def connector_of(
    installation: Installation, tokens: list[str], tmp_path: Path
) -> Iterator[Callable[[], Connector]]:
    """`connector_of()` is another computer of an owner of the test's own, not yet paired."""
    token = tokens.pop()
    made: list[Connector] = []

    def make() -> Connector:
        made.append(
            Connector(installation.url, Api(installation.url, token), tmp_path / f"computer-{len(made)}")
        )
        return made[-1]

    yield make
    for connector in made:
        connector.clear_away()


@pytest.fixture
def connector(connector_of: Callable[[], Connector]) -> Connector:
    """A computer that is paired, connected, and may have its files changed."""
    made = connector_of()
    made.pair()
    made.start()
    made.await_online()
    return made
