"""Pushes as Git sends them, made by hand, for tests that alter or interrupt them."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from tests.forge.server import Git

PATH = "owner/project"
RECEIVE = "application/x-git-receive-pack-request"


def basic(secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"x:{secret}".encode()).decode()}


def push_body(work: Path, git: Git, old: str, new: str, ref: str = "refs/heads/main") -> bytes:
    """What git would send to move one ref."""
    line = f"{old} {new} {ref}\0 report-status side-band-64k\n".encode()
    pack = git_bytes(git, work, "pack-objects", "--revs", "--stdout", "-q", input_text=f"{new}\n^{old}\n")
    return f"{len(line) + 4:04x}".encode() + line + b"0000" + pack


def git_bytes(git: Git, work: Path, *arguments: str, input_text: str) -> bytes:
    import subprocess

    return subprocess.run(
        ["git", *arguments],
        cwd=work,
        env=git.environment(),
        input=input_text.encode(),
        capture_output=True,
        check=True,
    ).stdout


def line(ref: str, old: str = "0" * 40, new: str = "1" * 40) -> bytes:
    text = f"{old} {new} {ref}\0 report-status\n".encode()
    return f"{len(text) + 4:04x}".encode() + text + b"0000"
