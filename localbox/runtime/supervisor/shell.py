"""How a command's text reaches its shell.

The text is not an argument: every user of the host can read the arguments of every process, and a command may
carry a credential. It is handed over as an open file (descriptor 3) that the shell reads into a variable, closes
and evaluates, so that `$0`, an empty standard input, `exit`, `exec`, here-documents and `set -e` are what they
are under `bash -c`.
"""

from __future__ import annotations

import os

SCRIPT_FD = 3

_BASH = 'IFS= read -r -d "" OA_COMMAND <&3; exec 3<&-; eval "unset -v OA_COMMAND;$OA_COMMAND"'
# Without a fork of its own, so that a command also starts in a box that is at its process limit.
_SH = (
    'OA_COMMAND=; while IFS= read -r OA_LINE; do OA_COMMAND="$OA_COMMAND$OA_LINE\n"; done <&3; '
    'exec 3<&-; eval "unset -v OA_COMMAND OA_LINE;$OA_COMMAND$OA_LINE"'
)

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


def find() -> str:
    """The shell that runs the commands of a box: bash where there is one, else sh."""
    return next((path for path in _SHELLS if os.access(path, os.X_OK)), "/bin/sh")


def arguments(shell: str) -> list[str]:
    """The argument list that runs the text in descriptor 3."""
    name = os.path.basename(shell)
    return [name, "-c", _BASH if name == "bash" else _SH, name]


def script(text: bytes) -> int:
    """An unnamed file in memory with the command's text, at its start. The caller closes it."""
    fd = os.memfd_create("command", os.MFD_CLOEXEC)
    try:
        _write_all(fd, text)
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _write_all(fd: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(fd, rest) :]
