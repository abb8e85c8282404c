"""The three calls of Linux that Python does not offer in every supported version."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def become_subreaper() -> None:
    """Orphans among the descendants of this process come back to it, whatever they did to detach."""
    _prctl(_PR_SET_CHILD_SUBREAPER)


def forbid_new_privileges() -> None:
    """From here on no setuid program and no file capability gives this process, or its children, anything."""
    _prctl(_PR_SET_NO_NEW_PRIVS)


def join_namespace(fd: int) -> None:
    """Move this (single-threaded) process into the namespace of an open `/proc/PID/ns/...` file."""
    if _libc.setns(fd, 0) != 0:
        raise _last_error()


def _prctl(option: int) -> None:
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    if _libc.prctl(ctypes.c_int(option), one, zero, zero, zero) != 0:
        raise _last_error()


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
