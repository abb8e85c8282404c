"""A real `localbox` process for tests: start it, kill it, stop it, start it again on the same state."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
READY_SECONDS = 60


@dataclass
class LocalboxServer:
    """One installation of localbox: a state folder, a key, and at most one process at a time.

    `sandbox` is auto, bwrap or plain; `settings` are further LOCALBOX_* values by their short lower-case names.
    Use it as a context manager; leaving it ends the process, every box, and deletes the folder.
    """

    sandbox: str = "auto"
    settings: dict[str, str] = field(default_factory=dict)
    port: int = 0  # 0: a free one, kept for later starts
    key: str = field(default_factory=lambda: f"box_{secrets.token_urlsafe(24)}")
    state_dir: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="localbox-test-")))
    process: subprocess.Popen[str] | None = None

    @property
    def base_url(self) -> str:
        """Of the first dialect: what a client of the API is given."""
        return f"{self.origin}/api/box/v1"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_path(self) -> Path:
        return self.state_dir / "private" / "test.log"

    def start(self, **changed: str) -> LocalboxServer:
        """Start the process and wait until it says that it is ready. `changed` settings hold from now on."""
        assert self.process is None, "it runs already"
        self.settings |= changed
        self.state_dir.chmod(0o711)
        self.log_path.parent.mkdir(mode=0o700, exist_ok=True)
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                self._command("serve"), cwd=REPOSITORY, env=self._environment(), text=True,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        line = self._ready_line()
        self.port = int(line.split(" (")[0].rsplit(":", 1)[1])
        return self

    def kill9(self) -> None:
        """Kill the provider alone, as the kernel or a power cut would; its boxes go on."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop it cleanly, which ends its boxes; returns the exit status."""
        return self._end(signal.SIGTERM)

    def restart(self, **changed: str) -> LocalboxServer:
        """kill -9 and start again."""
        self.kill9()
        return self.start(**changed)

    def sweep(self) -> subprocess.CompletedProcess[str]:
        """`localbox sweep`: what an operator does after a kill without a new start."""
        return subprocess.run(
            self._command("sweep"), cwd=REPOSITORY, env=self._environment(), text=True,
            capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    def close(self) -> None:
        """End everything that this installation ever started, and delete its folder."""
        if self.process is not None:
            assert self.stop() == 0, self.log()[-4000:]
        else:
            swept = self.sweep()
            assert swept.returncode == 0, swept.stderr
        shutil.rmtree(self.state_dir)

    def log(self) -> str:
        return self.log_path.read_text()

    def __enter__(self) -> LocalboxServer:
        return self if self.process else self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _command(self, name: str) -> list[str]:
        return [sys.executable, "-m", "localbox", name]

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOCALBOX_")}
        own = {
            "key": self.key,
            "state_dir": str(self.state_dir),
            "port": str(self.port),
            "sandbox": self.sandbox,
        }
        return inherited | {
            f"LOCALBOX_{name.upper()}": value for name, value in (own | self.settings).items()
        }

    def _ready_line(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("localbox ready"):
                return str(line)
        status = self.process.wait(READY_SECONDS)
        self.process.stdout.close()
        self.process = None
        raise AssertionError(f"localbox ended with status {status}:\n{self.log()[-4000:]}")

    def _end(self, how: signal.Signals) -> int:
        assert self.process is not None, "it is not running"
        self.process.send_signal(how)
        status = self.process.wait(90)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return status
