"""Starting the supervisor of a box."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

from .interface import BoxSpec, RuntimeFault, SupervisorRecord

_SECONDS = 60.0
_CODE_ROOT = Path(__file__).resolve().parents[2]
# -I and -S keep out the environment and site-packages: quicker, smaller, and nothing a box could influence.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from localbox.runtime.supervisor.main import main; main()"
)
_SHARED = {
    Path(name) for name in ("/", "/etc", "/usr", "/usr/lib", "/usr/local", "/usr/local/lib", "/usr/share")
}
_LIBRARIES = ("site-packages", "dist-packages")
_OPTIONS = ("-I", "-S", "-X", "no_debug_ranges")


async def launch(spec: BoxSpec, bwrap: str | None) -> SupervisorRecord:
    """Start a detached supervisor and wait until its box is up.

    Raises `RuntimeFault` with `start_failed` and what the supervisor said.
    """
    return await asyncio.to_thread(_launch, spec, bwrap)


def _launch(spec: BoxSpec, bwrap: str | None) -> SupervisorRecord:
    arguments = [sys.executable, *_OPTIONS, "-c", _PROGRAM, str(_CODE_ROOT)]
    environment = {"BOX_ID": spec.box_id, "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
    try:
        done = subprocess.run(
            arguments,
            input=_settings(spec, bwrap),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeFault("start_failed", f"the box's supervisor did not start: {error}") from error
    return _record(done.stdout)


def _settings(spec: BoxSpec, bwrap: str | None) -> bytes:
    values = {
        "box_id": spec.box_id,
        "root": str(spec.root.resolve()),
        "uid": spec.uid,
        "env": spec.env,
        "limits": dataclasses.asdict(spec.limits),
        "network": spec.network,
        "bwrap": bwrap,
        "hidden": [str(path) for path in _hidden(spec.root.resolve())],
    }
    return json.dumps(values).encode()


def _hidden(root: Path) -> list[Path]:
    """The provider's own folders, for the case that they lie in one that boxes see: its program, its Python
    environment, all boxes and what is kept beside them. Not a folder that the system's own programs share."""
    candidates = [_CODE_ROOT, root.parent, root.parent.parent]
    if sys.prefix != sys.base_prefix:
        candidates.append(Path(sys.prefix))
    return [path for path in candidates if path not in _SHARED and path.name not in _LIBRARIES]


def _record(line: bytes) -> SupervisorRecord:
    try:
        said = json.loads(line)
    except ValueError as error:
        raise RuntimeFault("start_failed", "the box's supervisor ended without a word") from error
    if "code" in said:
        raise RuntimeFault(said["code"], said["message"])
    return SupervisorRecord(said["pid"], said["start_time"], said["socket"])
