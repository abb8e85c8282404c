"""The environment in which every `git` of ours runs: nothing of the surroundings, no configuration but this one.

Configuration travels in variables and not in the repositories: what a repository's own file says can come only from us, and
one place says it for all, whenever they were made.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from forge.conf import forge_settings, storage_root
from forge.git.hook import PRE_RECEIVE

HOOKS = "hooks"
ASIDE = "refs/import/"
"""Where an import puts what it fetches until all of it is here."""


def environment(**more: str) -> dict[str, str]:
    """The variables of one `git`; `more` are added."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        **_as_variables(_configuration()),
        **more,
    }


@functools.cache
def http_backend() -> str:
    """The path of Git's own CGI program. Raises FileNotFoundError if Git is not installed."""
    if shutil.which("git") is None:
        raise FileNotFoundError("git is not installed")
    folder = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True, env=_bare())
    return str(Path(folder.stdout.strip()) / "git-http-backend")


def hooks_folder() -> Path:
    """The folder with our only hook, made or mended if need be."""
    folder = storage_root() / HOOKS
    file = folder / "pre-receive"
    try:
        is_ours = file.read_text() == PRE_RECEIVE and file.stat().st_mode & stat.S_IXUSR
    except OSError:
        is_ours = False
    if not is_ours:
        _write_hook(folder, file)
    return folder


def _write_hook(folder: Path, file: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder / f".pre-receive.{os.getpid()}.{os.urandom(4).hex()}"
    unfinished.write_text(PRE_RECEIVE)
    unfinished.chmod(0o755)
    unfinished.replace(file)


def _configuration() -> dict[str, str]:
    settings = forge_settings()
    return {
        "core.hooksPath": str(hooks_folder()),
        "safe.directory": "*",  # repositories may belong to another account of ours than this process
        "core.bigFileThreshold": "16m",  # larger files are streamed, never held in memory
        "core.fsync": "committed,reference",  # a push that was acknowledged is on the disk
        "transfer.fsckObjects": "true",
        "transfer.unpackLimit": "1",  # packs stay packs: unpacking would hold whole files in memory
        "receive.maxInputSize": str(settings.push_bytes),
        "receive.autogc": "false",
        "receive.advertisePushOptions": "false",
        "gc.auto": "0",
        "http.receivepack": "true",
        "http.uploadpack": "true",
        "uploadpack.allowFilter": "true",
        "transfer.hideRefs": ASIDE.rstrip("/"),  # an import on its way is nobody's to see or to write
        "pack.threads": str(settings.pack_threads),
        "pack.windowMemory": "64m",
        "protocol.allow": "never",  # the server itself never fetches; an import says otherwise
    }


def _as_variables(configuration: Mapping[str, str]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(configuration))}
    for number, (key, value) in enumerate(configuration.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def _bare() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
