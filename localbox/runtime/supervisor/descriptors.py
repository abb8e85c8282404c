"""Giving a program that is about to be started its open files."""

from __future__ import annotations

import fcntl
import os

_HIGH = 50  # above every number that is handed out


def arrange(files: list[int]) -> None:
    """Make these the descriptors 0, 1, 2 ... of the next program; all others close when it starts."""
    high = [
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in files
    ]  # first, so that none is overwritten
    for number, fd in enumerate(high):
        os.dup2(fd, number)
