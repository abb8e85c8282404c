"""Which folder it is: found the same way by every process, from the environment and one small file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from .errors import StateRootError, explained

CHECKOUT = Path(__file__).resolve().parents[2]
SHARED = Path("/var/lib/openagents-boxes")
LOCATION = "LOCATION"


def default_folder(checkout: Path = CHECKOUT) -> Path:
    return checkout / ".data"


def explicit_folder(environ: Mapping[str, str], checkout: Path = CHECKOUT) -> Path | None:
    """The folder that STATE_DIR names; a relative one is below the checkout, wherever the process was started."""
    given = environ.get("STATE_DIR", "").strip()
    return checkout / Path(given).expanduser() if given else None


def resolve(environ: Mapping[str, str] | None = None, checkout: Path = CHECKOUT) -> Path:
    """The state folder, which need not exist: STATE_DIR, else where `prepare` had to move it, else `.data` in the checkout.

    Reads at most one small file. Raises `StateRootError` if that file is garbled.
    """
    explicit = explicit_folder(os.environ if environ is None else environ, checkout)
    return explicit or read_location(default_folder(checkout)) or default_folder(checkout)


def read_location(folder: Path) -> Path | None:
    """Where the state that belongs into `folder` is instead; None if it is there."""
    file = folder / LOCATION
    try:
        text = file.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        text = ""
    if not text.startswith("/"):
        raise StateRootError("bad_location", f"The file {file} does not name a folder; remove it.")
    return Path(text)


def write_location(folder: Path, target: Path) -> None:
    """Leave word in `folder`, readable for all, that the state is in `target`."""
    unfinished = folder / f"{LOCATION}.{os.getpid()}"
    with explained(folder):
        unfinished.write_text(f"{target}\n")
        unfinished.chmod(0o644)
        unfinished.replace(folder / LOCATION)


def shared_folder(folder: Path, shared: Path = SHARED) -> Path:
    """The place for root's state that other accounts cannot reach in `folder`: always the same for the same path."""
    return shared / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
