"""The small program that the first attempt mends, and how it gets into its repository: with git, as a user would push it."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

GREET = """\
#!/bin/sh
# Greets whoever is named, or everybody.
echo "Helo, ${1:-world}!"
"""
CHECK = """\
#!/bin/sh
# Is everybody greeted as they should be?
failed=0
for name in world box branch; do
    said=$(./greet "$name")
    if [ "$said" = "Hello, $name!" ]; then echo "ok      $said"; else echo "not ok  $said"; failed=1; fi
    sleep 0.5
done
exit $failed
"""
FILES = {"greet": GREET, "check": CHECK}
PUSH_SECONDS = 60


class PushFailed(Exception):
    """Why the program is not in its repository."""


def has_git() -> bool:
    return shutil.which("git") is not None


def push(url: str, token: str) -> None:
    """Make the program the repository's branch `main`. Raises PushFailed."""
    with tempfile.TemporaryDirectory(prefix="openagents-program-") as folder:
        for name, text in FILES.items():
            path = Path(folder) / name
            path.write_text(text)
            path.chmod(0o755)
        environment = _environment(folder, token)
        for arguments in (
            ["init", "--quiet", "--initial-branch=main"],
            ["add", "--all"],
            ["commit", "--quiet", "--message=A program that greets, and its check"],
            ["push", "--quiet", url, "main"],
        ):
            _git(arguments, folder, environment)


def _git(arguments: list[str], folder: str, environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=PUSH_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PushFailed(f"git {arguments[0]} did not end within {PUSH_SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise PushFailed(f"git {arguments[0]}: {said[-1]}")


def _environment(folder: str, token: str) -> dict[str, str]:
    """Nothing of the user's own configuration. The token is in no command line."""
    who = {"NAME": "OpenAgents Boxes", "EMAIL": "admin@localhost"}
    basic = base64.b64encode(f"admin:{token}".encode()).decode()
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": folder,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
        **{f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in who.items()},
    }
