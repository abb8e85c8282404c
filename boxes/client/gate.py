"""Keeping quiet for as long as the provider asked: shared by the calls of one pass or one pump."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from boxes.errors import ProviderCode, RetryLater


class Gate:
    """Remembers a `Retry-After` and refuses calls until then, without a request. Safe for many threads.

    Starts (creating boxes) are limited by providers apart from everything else, so they have a door of their own.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._opens_at = {"start": 0.0, "other": 0.0}

    def check(self, door: str) -> None:
        """Raises RetryLater `box_rate_limited` with the seconds left while the door is closed."""
        left = self.seconds_left(door)
        if left > 0:
            raise RetryLater(
                ProviderCode.RATE_LIMITED, retry_after_seconds=left, log_detail="not sent: asked to wait"
            )

    def seconds_left(self, door: str = "other") -> float:
        """For how long the door stays closed; 0 if it is open."""
        with self._lock:
            return max(0.0, self._opens_at[door] - self._monotonic())

    def close(self, door: str, seconds: float) -> None:
        """Keep the door closed for `seconds` from now, unless it is already closed for longer."""
        with self._lock:
            self._opens_at[door] = max(self._opens_at[door], self._monotonic() + seconds)
