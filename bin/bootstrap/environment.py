"""The virtual environment: whole, stamped with what it holds, and made by one start at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from layout import CACHE, CHECKOUT, LOG, PYTHON, STAMP, UNFINISHED, VENV
from packages import install_packages
from progress import Progress, clean_environment, run
from reasons import Unready, cause_of


def prepared(files: tuple[str, ...]) -> Path:
    """The environment's Python, with everything in `files` installed. Raises Unready or OSError."""
    if shutil.which("git") is None:
        raise Unready("git is missing: install it (Debian, Ubuntu: apt-get install git) and run this again")
    wanted = wanted_of(files)
    if not holds(wanted):
        with sole_installer():
            if not holds(wanted):  # whoever held the lock may have done it
                install(wanted)
    return PYTHON


def wanted_of(files: tuple[str, ...]) -> dict[str, str]:
    """The digests of these requirements."""
    return {name: hashlib.sha256((CHECKOUT / name).read_bytes()).hexdigest() for name in files}


def holds(wanted: dict[str, str]) -> bool:
    """Whether a finished environment of this very folder holds these requirements and its Python runs."""
    installed = _stamp()
    if installed.get("folder") != str(VENV) or UNFINISHED.exists():
        return False
    return wanted.items() <= installed.items() and _runs(PYTHON)


@contextlib.contextmanager
def sole_installer() -> Iterator[None]:
    """Hold the installer's lock; a second start waits here until the first is done."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "bootstrap.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another start in this checkout to finish installing ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(wanted: dict[str, str]) -> None:
    """Make the environment, or bring it up to date, and stamp it."""
    LOG.write_text("")
    held = _stamp()
    whole = held.get("folder") == str(VENV) and not UNFINISHED.exists() and _runs(PYTHON)
    by_hand = not held and PYTHON.exists() and not UNFINISHED.exists() and _runs(PYTHON)
    if not (whole or by_hand):
        make_environment()
    UNFINISHED.touch()
    try:
        install_packages(tuple(wanted))
    except Unready as reason:
        if not reason.halfway:  # nothing was changed, so nothing needs to be made anew
            UNFINISHED.unlink()
        raise
    partial = STAMP.with_suffix(".part")
    partial.write_text(json.dumps({"folder": str(VENV), **(held if whole else {}), **wanted}))
    partial.rename(STAMP)
    UNFINISHED.unlink()


def make_environment() -> None:
    """An empty virtual environment in place of whatever is there."""
    ensure_venv_module()
    if VENV.is_symlink():
        VENV.unlink()
    elif VENV.exists():
        print("Removing a half-made virtual environment ...", flush=True)
        shutil.rmtree(VENV)
    VENV.mkdir()
    UNFINISHED.touch()
    progress = Progress("Making the virtual environment")
    status, output = run([sys.executable, "-I", "-m", "venv", str(VENV)], progress.tick, clean_environment())
    progress.end()
    if status:
        raise Unready(cause_of(output, "the virtual environment could not be made"))


def ensure_venv_module() -> None:
    """Python's venv module: Debian and Ubuntu ship it apart. As root it is installed, else the command is named."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        if os.getuid() != 0 or shutil.which("apt-get") is None:
            sudo = "" if os.getuid() == 0 else "sudo "
            raise Unready(
                f"Python's venv module is missing: run `{sudo}apt-get install {package}`, then this again"
            ) from None
        install_venv_package(package)
        os.execv(sys.executable, [sys.executable, "-I", *sys.argv])  # the new module is seen by a new Python


def install_venv_package(package: str) -> None:
    """Install the distribution's package; as root only. Raises Unready if that did not give the module."""
    if os.environ.get("OPENAGENTS_VENV_PACKAGE_TRIED"):
        raise Unready(
            f"Python's venv module is still missing after installing {package}: install a Python with venv"
        )
    os.environ["OPENAGENTS_VENV_PACKAGE_TRIED"] = "1"
    progress = Progress(f"Installing {package} with apt-get, for Python's venv module")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (
        ["install", "-y", package],
        ["update"],
        ["install", "-y", package],
    )  # lists may be missing or old
    for command in commands:
        status, output = run(["apt-get", *command], progress.tick, environment)
        if status == 0 and command[0] == "install":
            return progress.end()
    progress.end()
    raise Unready(cause_of(output, f"Python's venv module is missing and `apt-get install {package}` failed"))


def _stamp() -> dict[str, str]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _runs(python: Path) -> bool:
    test = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
    try:
        return (
            subprocess.run([str(python), "-I", "-c", test], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False
