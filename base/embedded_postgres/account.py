"""Which account the server runs as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import EmbeddedPostgresError

UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """A user and group id, with the name that messages use."""

    uid: int
    gid: int
    name: str
    has_name: bool = True

    @classmethod
    def of_uid(cls, uid: int) -> Account:
        """The account of a uid; one without a passwd entry has its own number as group and name."""
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            return cls(uid, os.getegid() if uid == os.geteuid() else uid, f"uid {uid}", has_name=False)
        return cls(uid, entry.pw_gid, entry.pw_name)

    @property
    def is_current(self) -> bool:
        return self.uid == os.geteuid()

    def popen_options(self) -> dict[str, Any]:
        """Keywords of `subprocess` that run a program as this account; none if this process already is it."""
        return {} if self.is_current else {"user": self.uid, "group": self.gid, "extra_groups": []}


def server_account(data: Path) -> Account:
    """The account for the server of the data folder `data`, which need not exist.

    An ordinary user's server runs as that user. Root's runs as the owner of existing data, else as `postgres`, else as
    `nobody`. Raises `EmbeddedPostgresError` for data that belongs to somebody else, or if there is no such account.
    """
    owner = _owner(data)
    if os.geteuid() != 0:
        if owner not in {None, os.geteuid()}:
            raise EmbeddedPostgresError(
                "wrong_owner",
                f"The database in {data} belongs to {Account.of_uid(owner or 0).name}; run this as that account.",
            )
        return Account.of_uid(os.geteuid())
    if owner == 0:
        raise EmbeddedPostgresError(
            "wrong_owner",
            f"The database in {data} belongs to root, as whom PostgreSQL does not run; give it to an account with chown -R.",
        )
    return Account.of_uid(owner) if owner is not None else _unprivileged()


def _owner(data: Path) -> int | None:
    try:
        return data.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise EmbeddedPostgresError(
            "wrong_owner", f"The folder {data.parent} belongs to another account; run this as that account."
        ) from None


def _unprivileged() -> Account:
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
    raise EmbeddedPostgresError(
        "no_account",
        "PostgreSQL does not run as root and there is no account postgres or nobody; create one, or set DATABASE_URL.",
    )
