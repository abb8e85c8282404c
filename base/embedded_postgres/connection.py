"""How to reach a server: the same four facts for psycopg, Django, psql and a URL."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .layout import PORT, SHORT_FOLDERS_OF_USERS, Layout

USER = "app"
DATABASE = "openagents_boxes"


@dataclass(frozen=True)
class Connection:
    """`host` is a host name or the folder of a unix socket. `peer`: the account that must own the serving process."""

    host: str
    user: str = USER
    dbname: str = DATABASE
    port: int = PORT
    password: str = ""
    peer: str = ""

    def parameters(self) -> dict[str, Any]:
        """Keywords of `psycopg.connect`."""
        optional = {"password": self.password, "requirepeer": self.peer}
        required = {"host": self.host, "port": self.port, "user": self.user, "dbname": self.dbname}
        return required | {name: value for name, value in optional.items() if value}

    def django(self) -> dict[str, Any]:
        """An entry of Django's DATABASES."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": self.dbname,
            "USER": self.user,
            "PASSWORD": self.password,
            "HOST": self.host,
            "PORT": str(self.port),
            "OPTIONS": {"requirepeer": self.peer} if self.peer else {},
        }

    def url(self) -> str:
        """The value for DATABASE_URL, in the form of django-environ: a socket's folder is part of the path."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        who = quote(self.user, safe="") + secret
        folder, name = f"/{quote(self.host)}", quote(self.dbname, safe="")
        if self.host.startswith("/"):
            return f"postgres://{who}@:{self.port}{folder}/{name}"
        return f"postgres://{who}@{self.host}:{self.port}/{name}"


def connection_to(folder: Path, dbname: str = DATABASE) -> Connection:
    """To the server in `folder`, whether or not it runs; nothing is made or changed.

    Where the socket had to be put into the common temporary folder, the connection demands that the server is ours.
    """
    run = Layout.at(folder).run
    return Connection(
        host=str(run), dbname=dbname, peer=_own_name() if run.parent == SHORT_FOLDERS_OF_USERS else ""
    )


def database_settings(state_root: Path) -> dict[str, Any]:
    """Django's DATABASES entry for the embedded server of the installation that keeps its files in `state_root`."""
    return connection_to(state_root / "postgres").django()


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""
