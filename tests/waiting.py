"""Waiting for what happens elsewhere: in another thread, another process, the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")
PATIENCE_SECONDS = 120.0  # only a failure waits for so long
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.01, 1.0
REST = 4  # times as long as a look took: whoever waits leaves the processor to what is waited for


def eventually(condition: Callable[[], Answer], seconds: float = PATIENCE_SECONDS) -> Answer:
    """The first true answer of `condition`. Fails with its last one if there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if answer := condition():
            return answer
        now = time.monotonic()
        assert now < deadline, f"it did not happen: {answer!r}"
        time.sleep(min(LONGEST_PAUSE_SECONDS, max(SHORTEST_PAUSE_SECONDS, REST * (now - began))))
