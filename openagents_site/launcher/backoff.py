"""How long a process that ended waits for its next start."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS = 0.1  # a process that was killed is back at once
LONGEST_SECONDS = 10.0  # a process that cannot start is tried again often enough to recover by itself
HEALTHY_SECONDS = 30.0  # having run this long, the process is well, and its next end counts as the first


@dataclass
class Backoff:
    """Doubles from `FIRST_SECONDS` to `LONGEST_SECONDS`, and begins anew after a healthy stretch."""

    ends: int = 0

    def after_end(self, ran_seconds: float) -> float:
        """The process ended after `ran_seconds`: how many seconds to wait before its next start."""
        self.ends = 1 if ran_seconds >= HEALTHY_SECONDS else self.ends + 1
        return min(FIRST_SECONDS * 2.0 ** min(self.ends - 1, 30), LONGEST_SECONDS)
