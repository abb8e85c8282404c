"""Running Python as an ordinary user when the session is root."""

from __future__ import annotations

import pwd
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
NEEDED = """
import subprocess, sys, base.embedded_postgres, psycopg, pytest
subprocess.run([sys.executable, "-c", "pass"], check=True)
"""


def becoming_nobody() -> list[str]:
    """A command prefix that runs Python as `nobody`; see `becoming`."""
    nobody = pwd.getpwnam("nobody")
    return becoming(nobody.pw_uid, nobody.pw_gid)


def becoming(uid: int, gid: int) -> list[str]:
    """A command prefix that runs Python as another account. Where the interpreter lies in a closed home, it also gets the right to
    read (or, where a container has no such right to give, to reach) every file; it stays another account in all else."""
    drop = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    for right in ("", "dac_read_search", "dac_override"):
        prefix = [*drop, *([f"--inh-caps=+{right}", f"--ambient-caps=+{right}"] if right else [])]
        tried = subprocess.run([*prefix, sys.executable, "-c", NEEDED], cwd=CHECKOUT, capture_output=True)
        if tried.returncode == 0:
            return prefix
    raise AssertionError(tried.stderr)
