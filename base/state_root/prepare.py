"""Making the state folder ready, once before the first process of an installation starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import StateRootError
from .folders import OWN_NAMES, ensure_folder, refuse_foreign
from .location import (
    CHECKOUT,
    LOCATION,
    SHARED,
    default_folder,
    explicit_folder,
    resolve,
    shared_folder,
    write_location,
)
from .reach import accounts_to_serve, first_shut_out

PASSABLE = 0o711  # others may go through to a folder they know the name of, and list nothing
CLOSED = 0o700


@dataclass(frozen=True)
class StateRoot:
    """The state folder, ready for use. `notice` is a sentence for the operator if it is not where one would look for it."""

    path: Path
    notice: str | None = None

    @property
    def postgres(self) -> Path:
        """The embedded database's folder; `embedded_postgres.Cluster` makes it, for the server's account."""
        return self.path / "postgres"

    @property
    def boxes(self) -> Path:
        """The embedded provider's folder, with one folder a box."""
        return self.path / "boxes"

    @property
    def private(self) -> Path:
        """Secrets; closed to everyone else."""
        return self.path / "private"


def prepare(
    environ: Mapping[str, str] | None = None, checkout: Path = CHECKOUT, shared: Path = SHARED
) -> StateRoot:
    """Make the state folder and return it. Safe to run again, and in two processes at once.

    As an ordinary user all of it has mode 0700. As root it is 0711, and the accounts of the database server and of the boxes
    are tried: if one cannot reach the default folder (a checkout below a closed home), the state goes to a folder in
    `shared`, and a file in the default one says so to every later process. Raises `StateRootError`.
    """
    environ = os.environ if environ is None else environ
    folder = resolve(environ, checkout)
    if explicit_folder(environ, checkout):
        refuse_foreign(folder)
    _ensure_root(folder)
    if os.geteuid() == 0:
        folder = _reachable(folder, environ, checkout, shared)
    state = StateRoot(folder, _notice(folder, environ, checkout))
    ensure_folder(state.private, CLOSED)
    ensure_folder(state.boxes, PASSABLE if os.geteuid() == 0 else CLOSED)
    return state


def _ensure_root(folder: Path) -> None:
    ensure_folder(folder, PASSABLE if os.geteuid() == 0 else CLOSED)


def _reachable(folder: Path, environ: Mapping[str, str], checkout: Path, shared: Path) -> Path:
    """`folder`, or the shared one where an account that must reach it cannot."""
    accounts = accounts_to_serve(folder, embedded_database=not environ.get("DATABASE_URL"))
    shut_out = first_shut_out(folder, accounts)
    if shut_out is None:
        return folder
    if folder != default_folder(checkout) or _holds_state(folder):
        raise StateRootError(
            "unreachable",
            f"The account {shut_out.name} cannot reach the state folder {folder}; open the folders above it (chmod a+x), or set STATE_DIR to another one.",
        )
    target = shared_folder(folder, shared)
    _ensure_root(target)
    shut_out = first_shut_out(target, accounts)
    if shut_out is not None:
        raise StateRootError(
            "unreachable",
            f"The account {shut_out.name} can reach neither {folder} nor {target}; set STATE_DIR.",
        )
    write_location(folder, target)
    return target


def _holds_state(folder: Path) -> bool:
    """Something is kept here already: moving on to an empty folder would lose it from sight."""
    return any((folder / name).exists() for name in OWN_NAMES - {LOCATION})


def _notice(folder: Path, environ: Mapping[str, str], checkout: Path) -> str | None:
    if explicit_folder(environ, checkout) or folder == default_folder(checkout):
        return None
    return f"State is kept in {folder}, since other accounts cannot reach {default_folder(checkout)}."
