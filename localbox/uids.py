"""A uid for each box, when the provider is root.

Ending a box ends everything of its uid, so two installations on one machine must never share one. Each takes a block
of its own, found from the path of its state folder, far above what a system gives to people and services.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from pathlib import Path

from .errors import ApiError

BLOCK = 10_000  # boxes with files that one installation can hold
_FIRST = 1_000_000
_BLOCKS = 200_000
_FIRST_LOW = 20_000  # where a container maps only 65,536 uids
_BLOCKS_LOW = 4


def block(state_dir: Path) -> range | None:
    """The uids for the boxes kept in `state_dir`; None when the provider is not root and cannot give any."""
    if os.geteuid() != 0:
        return None
    number = int.from_bytes(hashlib.sha256(bytes(state_dir)).digest()[:8])
    high = _FIRST + (number % _BLOCKS) * BLOCK
    if _is_mapped(high + BLOCK):
        return range(high, high + BLOCK)
    low = _FIRST_LOW + (number % _BLOCKS_LOW) * BLOCK
    return range(low, low + BLOCK)


def pick(uids: range | None, taken: Collection[int]) -> int | None:
    """A uid that no box of ours and no living process has. Raises ApiError 503 when there is none."""
    if uids is None:
        return None
    alive = _uids_alive()
    for uid in uids:
        if uid not in taken and uid not in alive:
            return uid
    raise ApiError(
        503, "out_of_capacity", "There is no uid left for another box; delete some.", retry_after=60
    )


def _is_mapped(uid: int) -> bool:
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _outside, length = map(int, line.split())
        if inside <= uid < inside + length:
            return True
    return False


def _uids_alive() -> set[int]:
    alive = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                alive.add(entry.stat().st_uid)
            except FileNotFoundError:
                continue
    return alive
