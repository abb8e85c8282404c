"""The installation as `bin/up` makes it, with a state folder of its own that is deleted afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from base.embedded_postgres.connection import Connection, connection_to
from benchmarks.house import say
from openagents_site.launcher import records
from tests.faults.installation import PASSED_ON, REPOSITORY
from tests.waiting import eventually

START_SECONDS = 300.0
END_SECONDS = 120.0
UP = re.compile(r"API: (\S+)/api/v1/")


class Embedded:
    """Started on entering, stopped as by Ctrl-C on leaving. `settings` come on top of a clean environment."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="longrun-"))
        self.folder.chmod(0o755)
        self.state = self.folder / "state"
        inherited = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.environment = (
            inherited
            | {"STATE_DIR": str(self.state), "DJANGO_SETTINGS_MODULE": "openagents_site.settings"}
            | settings
        )
        self._terminal = self.folder / "terminal"
        self._up: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        found = UP.search(self.said())
        assert found, self.said()
        return found[1]

    @property
    def database(self) -> Connection:
        return connection_to(self.state / "postgres")

    @property
    def supervisor(self) -> int:
        assert self._up is not None
        return self._up.pid

    def said(self) -> str:
        return self._terminal.read_text(errors="replace")

    def private(self, name: str) -> str:
        return (self.state / "private" / name).read_text().strip()

    def leaders(self) -> dict[str, int]:
        """The main process of each part that runs."""
        found = {
            name: group.leader.pid
            for name, group in records.read(self.state / "run").items()
            if group.leader.is_alive()
        }
        pidfile = self.state / "postgres" / "data" / "postmaster.pid"
        if pidfile.exists():
            found["postgres"] = int(pidfile.read_text().split()[0])
        return found | {"supervisor": self.supervisor}

    def owners(self, number: int) -> list[str]:
        """Tokens of new users."""
        made = json.loads(self.run("-m", "tests.faults.prepare", str(number), "0"))
        return [owner["token"] for owner in made]

    def run(self, *arguments: str, check: bool = True) -> str:
        """What a Python program of the installation prints."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=REPOSITORY, env=self.environment, text=True,
            capture_output=True, check=False, timeout=300,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    def start(self) -> None:
        with self._terminal.open("wb") as output:
            self._up = subprocess.Popen(
                [sys.executable, "-m", "openagents_site.launcher", "up", "--no-demo"],
                cwd=REPOSITORY, env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        eventually(self._is_up, seconds=START_SECONDS)

    def _is_up(self) -> bool:
        assert self._up is not None
        assert self._up.poll() is None, self.said()
        return "Up. Ctrl-C stops everything." in self.said()

    def stop(self) -> int:
        """Its exit status."""
        assert self._up is not None
        if self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)
        return self._up.wait(END_SECONDS)

    def __enter__(self) -> Embedded:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            say(self.said()[-3000:])
            assert self._up is not None
            self._up.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
