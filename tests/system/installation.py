"""A fresh clone of this checkout, started as its user would start it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from openagents_site.launcher import records
from openagents_site.launcher.api_client import Api, ApiError
from tests.waiting import eventually

Answer = TypeVar("Answer")
CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120.0
START_SECONDS = 600.0
# What the tests' own settings put into the environment, and whatever would make the clone another installation.
NOT_PASSED_ON = re.compile(
    r"(DATABASE_URL|SECRET_KEY|ALLOWED_HOSTS|PUBLIC_BASE_URL|STATE_DIR|DEBUG|HOME|XDG_.*|WEB_.*|TEST_.*"
    r"|BOX_.*|RUN_.*|LOCALBOX_.*|DJANGO_.*|PYTEST.*|PYTHON.*|OPENAGENTS_.*|VIRTUAL_ENV)"
)


class Up:
    """A `bin/up` that was started, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: Path) -> None:
        self.process = process
        self._terminal = terminal

    def said(self) -> str:
        return self._terminal.read_text()

    def is_up(self) -> bool:
        """Whether it has said so. Fails if it ended instead."""
        assert self.process.poll() is None, self.said()
        return "Up. Ctrl-C stops everything." in self.said()

    def ends(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for its end; its exit status."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end; it said:\n{self.said()}") from None

    def interrupt(self) -> int:
        """Ctrl-C; its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.ends()


class Clone:
    """A clone in a folder that every account can reach, with an empty HOME and the system's own Python first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "openagents boxes"
        self.state = self.checkout / ".data"
        self._starts: list[Up] = []
        self._account: dict[str, Any] = {}
        subprocess.run(["git", "clone", "-q", CHECKOUT, self.checkout], check=True)
        home = folder / "home"
        home.mkdir()
        passed_on = {name: value for name, value in os.environ.items() if not NOT_PASSED_ON.fullmatch(name)}
        git = Path(str(shutil.which("git"))).parent
        path = f"/usr/bin:/bin:{git}"  # nothing that would write into HOME when it is run, as pip runs what it finds
        self.environment = {
            **passed_on,
            "HOME": str(home),
            "PATH": path,
            "PYTHONPYCACHEPREFIX": str(folder / "pyc"),
        }

    def give_to(self, uid: int) -> None:
        """Have everything of it belong to this account, which starts it from now on."""
        subprocess.run(["chown", "-R", f"{uid}:{uid}", self.folder], check=True)
        self._account = {"user": uid, "group": uid, "extra_groups": []}

    def starts(self, *arguments: str, **options: Any) -> Up:
        """`bin/up` in a session of its own, as in a terminal of its own."""
        terminal = self.folder / f"terminal-{len(self._starts)}"
        with terminal.open("wb") as output:
            process = subprocess.Popen(
                [self.checkout / "bin" / "up", *arguments],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **({"env": self.environment} | self._account | options),
            )
        self._starts.append(Up(process, terminal))
        return self._starts[-1]

    def is_up(self, *arguments: str) -> Up:
        """Start it and wait until it is up."""
        up = self.starts(*arguments)
        eventually(up.is_up)
        return up

    def private(self, name: str) -> str:
        return (self.state / "private" / name).read_text().strip()

    def api(self, up: Up) -> Api:
        """The public API with the administrator's token."""
        found = re.search(r"API: (\S+)/api/v1/", up.said())
        assert found, up.said()
        return Api(found[1], self.private("admin_token"))

    def pids(self) -> dict[str, int]:
        """Main process of each part that runs."""
        found = {
            name: group.leader.pid
            for name, group in records.read(self.state / "run").items()
            if group.leader.is_alive()
        }
        postmaster = self.state / "postgres" / "data" / "postmaster.pid"
        if postmaster.exists():
            found["postgres"] = int(postmaster.read_text().split()[0])
        return found

    def processes(self) -> dict[int, str]:
        """Every living process that has this clone's folder in its command line or environment."""
        return {
            pid: text for pid, text in command_lines().items() if str(self.folder) in text or self._made(pid)
        }

    def end(self) -> None:
        """End what a failed test left."""
        for up in self._starts:
            if up.process.poll() is None:
                up.process.send_signal(signal.SIGINT)
                try:
                    up.process.wait(60)
                except subprocess.TimeoutExpired:
                    up.process.kill()
        for pid in self.processes():
            kill(pid)

    def _made(self, pid: int) -> bool:
        try:
            return os.fsencode(self.folder) in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


def command_lines() -> dict[int, str]:
    """What a process list shows to everyone."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found[int(entry.name)] = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
    return {pid: text for pid, text in found.items() if text}


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def persistently(request: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer, asked for again while the site is not there: its processes are being killed."""

    def answer() -> dict[str, Any]:
        try:
            return request()
        except ApiError as error:
            if error.status not in {0, 500, 502, 503} and error.code != "idempotency_in_progress":
                raise
            return {}

    return eventually(answer)


@contextmanager
def fresh_clone() -> Iterator[Clone]:
    folder = Path(tempfile.mkdtemp(prefix="up-"))
    folder.chmod(0o755)
    clone = Clone(folder)
    try:
        yield clone
    finally:
        clone.end()
        shutil.rmtree(folder, ignore_errors=True)
