"""Becomes a program of another account that ends when its parent does. Run as a script; imports nothing of the product.

usage: launch.py PARENT_PID UID GID SIGNAL PROGRAM [ARGUMENT ...]

The kernel sends SIGNAL to the program when the thread that started this script ends, by kill -9 too. This is done here,
after the change of account (which would clear it) and before the program runs, and not between fork and exec of the
parent, where a process with threads may not run Python.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, uid, gid, signal_number = map(int, arguments[:4])
    program = arguments[4:]
    if uid != os.geteuid():
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    os.umask(0o077)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("its parent has ended")
    os.execv(program[0], program)  # noqa: S606 - becoming the program is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
