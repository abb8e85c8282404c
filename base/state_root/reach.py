"""Whether the accounts that the product starts programs as can get to a folder of root's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from base.embedded_postgres import Account, server_account

from .errors import StateRootError

FIRST_BOX_UID = 61200  # boxes have uids of their own from here on; the first stands for all


def accounts_to_serve(folder: Path, *, embedded_database: bool) -> list[Account]:
    """A box's account, and that of the embedded database if there is one."""
    box = Account(FIRST_BOX_UID, FIRST_BOX_UID, f"uid {FIRST_BOX_UID} (a box)")
    return [*([server_account(folder / "postgres" / "data")] if embedded_database else []), box]


def first_shut_out(folder: Path, accounts: list[Account]) -> Account | None:
    """The first account that cannot enter `folder`; tried, not computed, since links, mounts and ACLs count as well."""
    return next((account for account in accounts if not _can_enter(folder, account)), None)


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
