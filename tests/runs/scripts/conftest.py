"""A box for scripts: a home of its own, a shell, and real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runs.replies import (
    DispatchReply,
    KillReply,
    PollReply,
    ProbeReply,
    parse_dispatch,
    parse_kill,
    parse_poll,
    parse_probe,
)
from runs.scripts import dispatch_script, kill_script, poll_script, probe_script
from tests.peers import needs

SHELLS = ("dash", "bash", pytest.param("busybox", marks=needs("busybox")))


@dataclass
class ScriptBox:
    """Runs scripts as a provider does: one shell per command, with a home and a PATH."""

    shell: list[str]
    home: Path
    path: str
    run_directory: str = field(
        default_factory=lambda: f"$HOME/.openagents/box-runs/users/someone/{uuid.uuid4()}"
    )
    before: Callable[[], None] | None = None

    @property
    def folder(self) -> Path:
        return self.home / self.run_directory.removeprefix("$HOME/")

    def start(self, script: str) -> subprocess.Popen[bytes]:
        environment = {"PATH": self.path, "HOME": str(self.home), "LANG": "C.UTF-8"}
        return subprocess.Popen(
            [*self.shell, "-c", script],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=self.before,
        )

    def run(self, script: str) -> subprocess.CompletedProcess[bytes]:
        with self.start(script) as process:
            out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def text(self, script: str) -> str:
        return self.run(script).stdout.decode()

    def dispatch(self, command: str, **options: object) -> DispatchReply:
        script = dispatch_script(self.run_directory, command, credential=options.get("credential"))  # type: ignore[arg-type]
        return parse_dispatch(self.text(script))

    def probe(self) -> ProbeReply:
        return parse_probe(self.text(probe_script(self.run_directory)))

    def poll(self, offset: int = 0, max_bytes: int = 65_536, wait_seconds: int = 0) -> PollReply:
        script = poll_script(
            self.run_directory, offset=offset, max_bytes=max_bytes, wait_seconds=wait_seconds
        )
        return parse_poll(self.text(script), offset=offset)

    def kill(self, **options: int) -> KillReply:
        return parse_kill(self.text(kill_script(self.run_directory, **options)))

    def wait_for_end(self) -> tuple[PollReply, bytes]:
        """Polls until the run ended and its output is complete; the last reply and the whole output."""
        output = b""
        while True:
            reply = self.poll(len(output), wait_seconds=5)
            assert reply.present
            output += reply.log.data
            if reply.is_drained:
                return reply, output
            assert reply.exit or reply.alive, (reply, self.files())

    def ends(self, command: str) -> tuple[PollReply, bytes]:
        assert self.dispatch(command).pid
        return self.wait_for_end()

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))

    def processes(self) -> list[int]:
        """Every living process whose environment names this box's home."""
        wanted = f"={self.home}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                alive = (entry / "stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
                if alive and wanted in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
        return found


def read_if_there(file: Path) -> bytes:
    """What a file in /proc says; nothing if its process has just ended."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="session")
def busybox_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder in which every tool is busybox."""
    folder = tmp_path_factory.mktemp("busybox")
    subprocess.run(["busybox", "--install", "-s", folder], check=True)
    return str(folder)


def link_tools(folder: Path, *tools: str) -> str:
    """A PATH that holds these tools and no others."""
    folder.mkdir(exist_ok=True)
    for tool in tools:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    return str(folder)


def hide_proc(box: ScriptBox) -> None:
    """From now on the scripts of this box find nothing in /proc."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode:
        pytest.skip("mounting needs root")
    box.shell = [shutil.which("unshare") or "unshare", *hidden[1:], *box.shell]


@pytest.fixture(params=SHELLS)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScriptBox]:
    home = tmp_path / "a home with 'quotes' $x"
    home.mkdir()
    box = make_box(request, request.param, home)
    yield box
    end_everything(box)


@pytest.fixture
def dash_box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScriptBox]:
    """The same with dash alone, where the shell makes no difference."""
    home = tmp_path / "home"
    home.mkdir()
    box = make_box(request, "dash", home)
    yield box
    end_everything(box)


def make_box(request: pytest.FixtureRequest, shell: str, home: Path) -> ScriptBox:
    if shell == "busybox":
        path = request.getfixturevalue("busybox_path")
        return ScriptBox([f"{path}/sh"], home, path)
    return ScriptBox([f"/bin/{shell}"], home, "/usr/local/bin:/usr/bin:/bin")


def end_everything(box: ScriptBox) -> None:
    while found := box.processes():
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
