"""A real web server on the test database, and stock git as its client."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests
from django.db import connection

from base.embedded_postgres import Connection
from tests.ports import free_port

CHECKOUT = Path(__file__).resolve().parents[2]
READY_SECONDS = 180.0
GIT_SECONDS = 120


@dataclass
class WebServer:
    """gunicorn as in service. Leaving the context ends it."""

    storage: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        return (self.folder / "web.log").read_text(errors="replace")

    def start(self) -> WebServer:
        self.port = self.port or free_port()
        with (self.folder / "web.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "-c", "openagents_site/gunicorn.py"],
                cwd=CHECKOUT, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._await_ready()
        return self

    def kill9(self) -> None:
        """Kill the web server alone; a git that it started goes on by itself."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            child.kill()
        self.process.kill()
        self.process.wait(30)
        self.process = None

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT)  # at once: nobody is served any more
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill9()
        self.process = None

    def memory(self) -> int:
        """Bytes that its processes hold resident, without those of git."""
        assert self.process is not None
        main = psutil.Process(self.process.pid)
        mine = [p for p in [main, *main.children()] if not _is_git(p)]
        return sum(_resident(p) for p in mine)

    def gits(self) -> list[psutil.Process]:
        """The git processes that it started and that are there."""
        assert self.process is not None
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [p for p in found if _is_git(p)]

    def __enter__(self) -> WebServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _environment(self) -> dict[str, str]:
        given = connection.settings_dict
        database = Connection(
            host=given["HOST"], user=given["USER"], dbname=given["NAME"], port=int(given["PORT"] or 5432),
            password=given["PASSWORD"],
        )  # fmt: skip
        inherited = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ
        }
        return inherited | {
            "DATABASE_URL": database.url(),
            "SECRET_KEY": "only-for-tests-" + "x" * 50,
            "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
            "STATE_DIR": str(self.folder / "state"),
            "ALLOWED_HOSTS": "127.0.0.1",
            "PUBLIC_BASE_URL": self.url,
            "WEB_BIND": f"127.0.0.1:{self.port}",
            "WEB_THREADS": "32",
            "FORGE_STORAGE_ROOT": str(self.storage),
            "BOX_API_KEY": "unused",
        } | self.settings  # fmt: skip

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(f"{self.url}/healthz"):
            assert self.process is not None
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)


@dataclass
class Git:
    """Stock git in a folder of its own, as a user has it: no configuration but its own."""

    folder: Path
    server: WebServer

    def url(self, path: str, secret: str | None = None) -> str:
        """The address of `owner/name`, with a credential in it where there is one."""
        who = f"x:{secret}@" if secret else ""
        return f"http://{who}127.0.0.1:{self.server.port}/{path}.git"

    def showing(self, secret: str | None) -> list[str]:
        """Options with which git shows a credential at once, and not only where it is asked for one."""
        if secret is None:
            return []
        encoded = base64.b64encode(f"x:{secret}".encode()).decode()
        return ["-c", f"http.extraHeader=Authorization: Basic {encoded}"]

    def __call__(
        self, *arguments: str, cwd: Path | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments], cwd=cwd or self.folder, env=self.environment() | more, text=True,
            capture_output=True, timeout=GIT_SECONDS, check=False,
        )  # fmt: skip

    def must(self, *arguments: str, cwd: Path | None = None, **more: Any) -> str:
        done = self(*arguments, cwd=cwd, **more)
        assert done.returncode == 0, (
            f"git {arguments}: {done.stdout}{done.stderr}\n{self.server.said[-3000:]}"
        )
        return done.stdout

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "Tester", "GIT_AUTHOR_EMAIL": "tester@example.org",
            "GIT_COMMITTER_NAME": "Tester", "GIT_COMMITTER_EMAIL": "tester@example.org",
        }  # fmt: skip

    def new(self, name: str = "work") -> Path:
        """A new repository with one commit on `main`."""
        self.must("init", "--quiet", "--initial-branch=main", name)
        work = self.folder / name
        self.commit(work, "begin")
        return work

    def commit(self, work: Path, message: str, file: str = "README", content: str | None = None) -> str:
        """One more commit; its id."""
        (work / file).write_text(content if content is not None else message + "\n")
        self.must("add", file, cwd=work)
        self.must("commit", "--quiet", "--allow-empty", "-m", message, cwd=work)
        return self.must("rev-parse", "HEAD", cwd=work).strip()


def _is_git(process: psutil.Process) -> bool:
    try:
        return "git" in process.name()
    except psutil.NoSuchProcess:
        return False  # it has just ended


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False
