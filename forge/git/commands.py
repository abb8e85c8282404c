"""Asking `git` about a repository on disk. Arguments are lists; nothing of a request becomes an option or a shell text."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from forge.git.environment import environment

SECONDS = 60
MOST_BYTES = 4 * 1024 * 1024


class GitFailed(Exception):
    """`git` ended with another status than 0, took too long, or could not be run. The text is for logs."""


def run(folder: Path, *arguments: str, input_text: str | None = None, seconds: float = SECONDS) -> str:
    """What `git` with these arguments prints in `folder`. Raises GitFailed."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment(GIT_DIR=os.fspath(folder)),
            input=(input_text or "").encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {arguments[0]} took longer than {seconds:g} s") from error
    except OSError as error:  # as where the folder is not there
        raise GitFailed(f"git {arguments[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise GitFailed(f"git {arguments[0]}: {done.stderr.decode(errors='replace')[:500]}")
    return done.stdout.decode(errors="surrogateescape")


def refs(folder: Path, names: Sequence[str] | None = None) -> dict[str, str]:
    """Ref -> object id; of all refs, or of those in `names` that exist. Raises GitFailed."""
    wanted = None if names is None else set(names)
    listed = run(folder, "for-each-ref", "--format=%(objectname) %(refname)")
    # Not by splitlines: a ref's name may hold what Unicode calls the end of a line, but no line feed.
    pairs = (line.split(" ", 1) for line in listed.split("\n") if line)
    found = {name: value for value, name in pairs}
    return found if wanted is None else {name: value for name, value in found.items() if name in wanted}


def restore_refs(folder: Path, changes: Mapping[str, Mapping[str, str | None]]) -> None:
    """Undo these changes (ref -> {old, new}), each only if the ref still is what the change made it. Raises GitFailed."""
    lines = []
    for ref, change in changes.items():
        old, new = change["old"], change["new"]
        if old is None:
            lines.append(f"delete {ref} {new}\n")
        elif new is None:
            lines.append(f"create {ref} {old}\n")
        else:
            lines.append(f"update {ref} {old} {new}\n")
    run(folder, "update-ref", "--stdin", input_text="".join(lines))


def commits_between(folder: Path, old: str | None, new: str, limit: int) -> list[tuple[str, str]]:
    """(id, message) of the commits of `new` that `old` does not have, newest first, at most `limit`, and no more than 4 MiB of
    them: a message has no bound. Raises GitFailed."""
    span = [new] if old is None else [new, f"^{old}"]
    text = _beginning(
        folder, "log", f"--max-count={limit}", "--format=%H%x00%B%x00", "--end-of-options", *span, "--"
    )
    parts = [part.strip("\n") for part in text.split("\0")[:-1]]  # the last is empty, or cut
    return list(zip(parts[0::2], parts[1::2], strict=False))


def _beginning(folder: Path, *arguments: str) -> str:
    """The first 4 MiB of what `git` prints. Raises GitFailed."""
    given = environment(GIT_DIR=os.fspath(folder))
    try:
        with subprocess.Popen(
            ["git", *arguments], cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            said: bytes = process.stdout.read(MOST_BYTES)
            process.stdout.close()  # one that has more to say ends of it
    except OSError as error:
        raise GitFailed(f"git {arguments[0]}: {error.strerror}") from error
    if process.returncode != 0 and len(said) < MOST_BYTES:
        raise GitFailed(f"git {arguments[0]} ended with {process.returncode}")
    return said.decode(errors="surrogateescape")


def show_file(folder: Path, commit: str, path: str) -> str:
    """The text of a file at a commit. Raises GitFailed."""
    return run(folder, "cat-file", "blob", f"{commit}:{path}")
