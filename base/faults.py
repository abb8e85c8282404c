"""Fault points: named places where a process may die, between what was committed and what was called.

In service they do nothing. A test arms one in its own process (`armed`) or in a process it starts (the environment
variable `FAULT_POINTS="boxes.create.called=kill"`), to raise, to sleep or to die as by kill -9. The names are
declared here, so that a misspelt one is an error and the list can be printed: `docs/reference/fault-points.md`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_declared: dict[str, str] = {}
_armed: dict[str, Callable[[], None]] = {}


class FaultRaised(Exception):
    """Raised by a fault point that was armed with `raise`."""


def declare(name: str, meaning: str) -> str:
    """Name a fault point once, where it is used; returns the name."""
    _declared[name] = meaning
    if name in _from_environment:
        _armed[name] = _action(_from_environment[name])
    return name


def declared() -> dict[str, str]:
    """Every fault point of the modules imported so far, with its meaning."""
    return dict(sorted(_declared.items()))


def fault_point(name: str) -> None:
    """Do what a test armed `name` with; nothing in service."""
    action = _armed.get(name)
    if action is not None:
        action()


@contextmanager
def armed(name: str, action: Callable[[], None] | str) -> Iterator[None]:
    """Arm a declared fault point for a while: a callable, `raise`, `kill`, or `sleep:SECONDS`."""
    if name not in _declared:
        raise KeyError(f"no fault point is called {name!r}")
    _armed[name] = _action(action) if isinstance(action, str) else action
    try:
        yield
    finally:
        _armed.pop(name, None)


def _action(text: str) -> Callable[[], None]:
    if text == "kill":
        return lambda: os.kill(os.getpid(), signal.SIGKILL)
    if text == "raise":
        return _raise
    if text.startswith("sleep:"):
        seconds = float(text.removeprefix("sleep:"))
        return lambda: time.sleep(seconds)
    raise ValueError(f"a fault point can raise, kill or sleep:SECONDS, not {text!r}")


def _raise() -> None:
    raise FaultRaised


_from_environment = dict(
    pair.split("=", 1) for pair in os.environ.get("FAULT_POINTS", "").split(",") if "=" in pair
)
