"""An installation of real processes on one database: the provider, web, and any number of workers.

Each part is a process group that can be killed as a whole and started again, as a supervisor would.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests

from base.embedded_postgres import Connection
from tests.localbox.server import LocalboxServer
from tests.ports import free_port
from tests.waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
PASSED_ON = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")
READY_SECONDS = 90.0
LIMITS = ("ACTIVE_BOXES", "ACTIVE_BOXES_PER_OWNER", "ACTIVE_BOXES_GLOBAL")


@dataclass
class Part:
    """One process of the installation, with its whole group."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: int = 0  # where in its log the present process begins

    def ensure(self) -> None:
        """Start it if it does not run, after what may be left of its group is gone."""
        if self.is_running:
            return
        self.kill9()
        with self.log.open("ab") as log:
            self.started_at = log.tell()
            self.process = subprocess.Popen(
                self.command, cwd=REPOSITORY, env=dict(self.environment), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def said(self) -> str:
        """What the present process has logged so far."""
        with self.log.open("rb") as log:
            log.seek(self.started_at)
            return log.read().decode(errors="replace")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill9(self) -> None:
        """Kill every process of its group, also what one of them started while this looked."""
        if self.process is None:
            return
        while members := [member for member in self._group() if _lives(member)]:
            for member in members:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
            psutil.wait_procs(members, timeout=30)
        self.process.wait(30)

    def _group(self) -> list[psutil.Process]:
        """Its group, told by its own folder from one that was given the same number since."""
        assert self.process is not None
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getpgid(process.pid) != self.process.pid:
                    continue
                if process.environ().get("STATE_DIR") == self.environment["STATE_DIR"]:
                    found.append(process)
        return found

    def stop(self) -> None:
        """As `bin/up` would on Ctrl-C."""
        if self.is_running:
            assert self.process is not None
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        self.kill9()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@dataclass
class Owner:
    """A user of the installation: the token, and the ledger's and the provider's ids of the boxes."""

    token: str
    boxes: list[tuple[str, str]]


@dataclass
class Installation:
    """Everything on one database. Leaving the context ends every part, and deletes the folder."""

    database: Connection
    provider: LocalboxServer
    settings: dict[str, str] = field(default_factory=dict)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="installation-")))
    port: int = field(default_factory=free_port)
    secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What every part gets, and nothing of the surroundings."""
        inherited = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        limits = {f"BOX_MAXIMUM_{name}": "100000" for name in LIMITS}
        limits |= {f"MACHINES_PAIRING_STARTS_PER_MINUTE{scope}": "100000" for scope in ("", "_GLOBAL")}
        own = {
            "DATABASE_URL": self.database.url(),
            "SECRET_KEY": self.secret_key,
            "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
            "STATE_DIR": str(self.folder / "state"),
            "ALLOWED_HOSTS": "127.0.0.1",
            "PUBLIC_BASE_URL": self.url,
            "WEB_BIND": f"127.0.0.1:{self.port}",
            "BOX_API_BASE_URL": self.provider.base_url,
            "BOX_API_KEY": self.provider.key,
        }
        return inherited | limits | own | self.settings

    def migrate(self) -> None:
        self.run("manage.py", "migrate", "--verbosity", "0")

    def owners(self, number: int, boxes_each: int = 1) -> list[Owner]:
        """New users, each with boxes that are up at the provider."""
        made = json.loads(self.run("-m", "tests.faults.prepare", str(number), str(boxes_each)))
        return [Owner(owner["token"], [tuple(box) for box in owner["boxes"]]) for owner in made]

    def run(self, *arguments: str) -> str:
        """What a Python program of the installation prints. Fails if it fails."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=REPOSITORY, env=self.environment(), text=True,
            capture_output=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    def add(self, name: str, *arguments: str, **settings: str) -> Part:
        """A part that runs Python with these arguments; it is started."""
        part = Part(
            name, [sys.executable, *arguments], self.environment() | settings, self.folder / f"{name}.log"
        )
        self.parts[name] = part
        part.ensure()
        return part

    def add_web(self, **settings: str) -> Part:
        return self.add("web", "-m", "gunicorn", "-c", "openagents_site/gunicorn.py", **settings)

    def add_worker(self, name: str = "worker", **settings: str) -> Part:
        return self.add(name, "manage.py", "run_worker", **settings)

    def await_web(self) -> None:
        eventually(lambda: answers(f"{self.url}/healthz"))

    def log(self, name: str) -> str:
        return self.parts[name].log.read_text(errors="replace")

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *_: object) -> None:
        for part in self.parts.values():
            part.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Api:
    """The public API with one user's token, over connections that a killed server may break."""

    def __init__(self, url: str, token: str) -> None:
        self.url = f"{url}/api/v1/"
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {token}"

    def __call__(self, method: str, path: str, **options: Any) -> requests.Response:
        return self.session.request(method, self.url + path, timeout=60, **options)

    def insist(self, method: str, path: str, *, seconds: float = 180.0, **options: Any) -> Any:
        """The JSON of a 2xx answer, asked for again while there is no server, or one that has lost its database."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                answer = self(method, path, **options)
            except requests.RequestException:
                answer = None
            if answer is not None and answer.ok:
                return answer.json()
            may_heal = answer is None or answer.status_code >= 500 or _asks_for_patience(answer)
            told = "nothing" if answer is None else f"{answer.status_code} {answer.text}"
            assert may_heal, f"{method} {path}: {told}"
            assert time.monotonic() < deadline, f"{method} {path}: still {told} after {seconds} s"
            time.sleep(0.1)


def _asks_for_patience(answer: requests.Response) -> bool:
    """A repeated request may use up its owner's minute, or meet itself."""
    return answer.status_code == 429 or "idempotency_in_progress" in answer.text


def answers(url: str) -> bool:
    """Whether there is a 2xx."""
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False
