"""What a box with namespaces of its own sees of the file system, as options of bwrap.

The system's programs and settings read-only, a private /proc, /dev, /tmp, and the home. Nothing else: not the
provider's state, not its program, not another box. The root is read-only, and every file system in memory has a size.
"""

from __future__ import annotations

import os
import stat

from .settings import HOME, TMP, Settings
from .shell import find

_INNER_ID = 1000  # uid and gid of the box's user as the box sees them
_SYSTEM = ("/usr", "/etc")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr on most systems
_RESOLVER = "/etc/resolv.conf"


def arguments(settings: Settings, first_file: int) -> tuple[list[str], list[int]]:
    """The options, and the open files they refer to, which must get the numbers from `first_file` on."""
    files = {"/etc/passwd": _passwd(), "/etc/group": _group()}
    given = [path for path in files if os.path.isfile(path)]
    options = ["--uid", str(_INNER_ID), "--gid", str(_INNER_ID), *_system(), *_own(settings)]
    for number, path in enumerate(given, first_file):
        options += ["--ro-bind-data", str(number), path]
    options += ["--bind", settings.home, HOME, "--remount-ro", "/", "--chdir", HOME]
    return options, [_in_memory(files[path]) for path in given]


def _system() -> list[str]:
    options = []
    for path in _SYSTEM:
        options += ["--ro-bind", path, path]
    for name in _MERGED:
        path = f"/{name}"
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    return options


def _own(settings: Settings) -> list[str]:
    size = str(settings.limits.tmp_bytes)
    devices = f"--proc /proc --dev /dev --size {size} --tmpfs /dev/shm --remount-ro /dev"
    places = f"--perms 1777 --size {size} --tmpfs {TMP} --dir /run --dir /var --symlink {TMP} /var/tmp"
    options = [*devices.split(), *places.split()]
    return [*options, *_name_servers(), *_hidden(settings)]


def _name_servers() -> list[str]:
    """Where /etc/resolv.conf is a link out of /etc, what it points to is shown too."""
    target = os.path.realpath(_RESOLVER)
    outside = os.path.islink(_RESOLVER) and not target.startswith(tuple(f"{path}/" for path in _SYSTEM))
    return ["--ro-bind-try", target, target] if outside else []


def _hidden(settings: Settings) -> list[str]:
    """Folders of the provider that lie in a folder that is shown, and, where the box runs as the provider's own user,
    what in /etc is not for everybody."""
    shown = tuple(f"{path}/" for path in _SYSTEM)
    folders = [path for path in settings.hidden if path.startswith(shown) and os.path.isdir(path)]
    options = []
    for path in folders:
        options += _covered(path, True)
    for path, is_folder in [] if settings.uid is not None else _private("/etc"):
        options += _covered(path, is_folder)
    return options


def _covered(path: str, is_folder: bool) -> list[str]:
    if is_folder:
        return ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", os.devnull, path]


def _private(top: str) -> list[tuple[str, bool]]:
    """What this user may read below `top` and others may not; whether it is a folder."""
    found: list[tuple[str, bool]] = []
    for folder, names, files in os.walk(top):
        for name in [*names, *files]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode) or mode & stat.S_IROTH or not os.access(path, os.R_OK):
                continue
            found.append((path, stat.S_ISDIR(mode)))
        names[:] = [name for name in names if (os.path.join(folder, name), True) not in found]
    return found


def _passwd() -> str:
    user = f"user:x:{_INNER_ID}:{_INNER_ID}:user:{HOME}:{find()}"
    return (
        f"root:x:0:0:root:/root:/usr/sbin/nologin\n{user}\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    )


def _group() -> str:
    return f"root:x:0:\nuser:x:{_INNER_ID}:\nnogroup:x:65534:\n"


def _in_memory(text: str) -> int:
    fd = os.memfd_create("file", os.MFD_CLOEXEC)
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
