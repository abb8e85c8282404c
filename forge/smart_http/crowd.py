"""How many requests without a credential a web process serves at once. They hold a thread each, and cost whoever makes them nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable


class Crowded(Exception):
    """There is no place for one more of them."""


class Crowd:
    """Who is inside. A place is for one address; no address has more than a quarter of all places, and one at least."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: Counter[str] = Counter()

    def enter(self, address: str, most: int) -> Callable[[], None]:
        """Take a place among `most`; returns how to leave it, which may be done more than once. Raises Crowded."""
        with self._lock:
            if self._inside.total() >= most or self._inside[address] >= max(1, most // 4):
                raise Crowded
            self._inside[address] += 1
        is_left = threading.Lock()
        return lambda: self._leave(address) if is_left.acquire(blocking=False) else None

    def _leave(self, address: str) -> None:
        with self._lock:
            self._inside[address] -= 1
            if self._inside[address] <= 0:
                del self._inside[address]


ANONYMOUS = Crowd()
