"""Where the plain text of a secret may be seen or is kept: process lists, logs, files that others can read, the database."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base.embedded_postgres import Connection
from base.embedded_postgres.binaries import installed
from tests.contract.exchange import Exchange
from tests.contract.installation import SECRETS, Running
from tests.system.installation import command_lines

HANDED_OUT = frozenset({"token", "secret", "poll_secret"})
LEAST = 16  # characters; what is shorter may be anywhere by chance


@dataclass
class ProcessList(threading.Thread):
    """Every command line that anybody on this machine could see while the block lasted."""

    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.1):
            self.seen |= set(command_lines().values())

    def __enter__(self) -> ProcessList:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    __hash__ = threading.Thread.__hash__


def known(server: Running, exchanges: Mapping[str, Exchange]) -> dict[str, str]:
    """Every secret of the installation and of the tour by what it is: those it was given, and those it handed out."""
    given = {
        "SECRET_KEY": server.installation.secret_key,
        "the provider's key": server.provider.key,
        "the database's password": server.installation.database.password,
        **SECRETS,
        **{f"token of {name}": token for name, token in server.tokens.items()},
    }
    handed_out = {
        f"{name} of {operation}": value
        for operation, exchange in exchanges.items()
        for name, value in _fields(exchange.answer)
        if name in HANDED_OUT and isinstance(value, str)
    }
    found = given | handed_out
    assert not [name for name, value in found.items() if len(value) < LEAST], found.keys()
    return found


def _fields(answer: Any) -> Iterator[tuple[str, Any]]:
    """Every named value in it, however deep."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield name, value
            yield from _fields(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _fields(value)


def dump(database: Connection) -> str:
    """The whole database as text."""
    environment = {"PATH": os.environ["PATH"], "PGPASSWORD": database.password}
    command = [
        installed().program("pg_dump"),
        "-h",
        database.host,
        "-p",
        str(database.port),
        "-U",
        database.user,
    ]
    done = subprocess.run([*command, database.dbname], env=environment, capture_output=True, check=True)
    return done.stdout.decode(errors="replace")


def logs(server: Running) -> dict[str, str]:
    """What every process of the installation wrote, and the provider. What a command printed stays in its box as it is."""
    paths = [*server.installation.folder.rglob("*.log"), server.provider.log_path]
    assert {"web.log", "worker.log"} <= {path.name for path in paths}
    return {str(path): path.read_text(errors="replace") for path in paths}


def open_files(server: Running) -> dict[str, str]:
    """Files of the installation and the provider that any account may read, links not followed."""
    found = {}
    for folder in (server.installation.folder, server.provider.state_dir):
        for path in folder.rglob("*"):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & stat.S_IROTH and not _is_closed_above(path, folder):
                found[str(path)] = path.read_bytes().decode(errors="replace")
    return found


def _is_closed_above(path: Path, top: Path) -> bool:
    """Whether a folder between keeps other accounts from coming near."""
    between = [parent for parent in path.parents if parent.is_relative_to(top)]
    return any(not parent.stat().st_mode & stat.S_IXOTH for parent in between)


def places(secrets: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """Which secret is where, in plain text or as JSON and addresses would write it."""
    return [
        f"{name} in {where}"
        for where, text in texts.items()
        for name, secret in secrets.items()
        if secret in text or json.dumps(secret)[1:-1] in text
    ]
