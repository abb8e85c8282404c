"""Whether the accounts that the product starts programs as can get to a folder of root's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from base.embedded_postgres import Account, server_account

from .errors import StateRootError, explained
from .folders import make_parents
from .location import SHARED, shared_folder

FIRST_BOX_UID = 61200  # boxes have uids of their own from here on; the first stands for all


def accounts_to_serve(folder: Path, *, embedded_database: bool) -> list[Account]:
    """A box's account, and that of the embedded database if there is one."""
    box = Account(FIRST_BOX_UID, FIRST_BOX_UID, f"uid {FIRST_BOX_UID} (a box)")
    return [*([server_account(folder / "postgres" / "data")] if embedded_database else []), box]


def first_shut_out(folder: Path, accounts: list[Account]) -> Account | None:
    """The first account that cannot enter `folder`; tried, not computed, since links, mounts and ACLs count as well."""
    return next((account for account in accounts if not _can_enter(folder, account)), None)


def reachable_folder(folder: Path, shared: Path = SHARED) -> Path:
    """Where a database server that is not an installation's keeps its files: `folder`, or, for root, one in `shared` if the
    server's account cannot get to `folder`. The folder above it is made.
    """
    if os.geteuid() != 0:
        return folder
    with explained(folder):
        make_parents(folder)
    if first_shut_out(folder.parent, [server_account(folder / "data")]) is None:
        return folder
    target = shared_folder(folder, shared)
    with explained(target):
        make_parents(target)
    return target


def _can_enter(folder: Path, account: Account) -> bool:
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$1"', "sh", folder],
            capture_output=True,
            cwd="/",
            **account.popen_options(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StateRootError(
            "unreachable",
            f"This process is root but may not start programs as {account.name}; run it as an ordinary user.",
        ) from error
    return done.returncode == 0
