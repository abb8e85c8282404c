"""A Git credential for one delegation: a file of mode 600 that a credential helper reads, named to Git by the surroundings of the
agent and nowhere else. The file is gone when the delegation has ended."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connector.places import write_private

KEY = "assignment_credential"


class Credential:
    """The credential of one delegation, if it has one."""

    def __init__(self, folder: Path, job: str) -> None:
        self.file = folder / f"{job}.git"

    def keep(self, handed: Any) -> Mapping[str, str]:
        """Keep the secret that was handed over; returns what may be remembered of it."""
        if not isinstance(handed, Mapping) or not all(
            isinstance(handed.get(name), str) for name in ("origin", "secret")
        ):
            return {}
        username = str(handed.get("username") or "x")
        if any("\n" in value or "\0" in value for value in (username, handed["secret"])):
            return {}
        write_private(self.file, f"username={username}\npassword={handed['secret']}\n")
        return {"origin": handed["origin"]}

    def environment(self, remembered: Any) -> dict[str, str]:
        """Variables by which Git asks this file, and no other helper, about that one origin."""
        origin = remembered.get("origin") if isinstance(remembered, Mapping) else None
        if (
            not isinstance(origin, str)
            or urlsplit(origin).scheme not in {"http", "https"}
            or not self.file.exists()
        ):
            return {}
        helper = f'!f() {{ test "$1" = get && cat {shlex.quote(str(self.file))}; }}; f'
        settings = [(f"credential.{origin}.helper", ""), (f"credential.{origin}.helper", helper)]
        variables = {"GIT_CONFIG_COUNT": str(len(settings)), "GIT_TERMINAL_PROMPT": "0"}
        for number, (key, value) in enumerate(settings):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return variables

    def forget(self) -> None:
        self.file.unlink(missing_ok=True)


def forget_all_but(folder: Path, jobs: Collection[str]) -> None:
    """Remove the credentials of all delegations but these, and what was left of writing one."""
    for file in folder.glob("*"):
        if file.name.removesuffix(".git") not in jobs:
            file.unlink(missing_ok=True)
