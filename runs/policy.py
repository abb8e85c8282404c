"""How often runs are looked at, from the settings in force. Why these numbers: docs/decisions/0007-how-runs-are-polled.md"""

from __future__ import annotations

from boxes.conf import box_api
from runs.decide import Policy

SLOTS = 640
"""Commands to boxes that one worker has in flight at most, nearly all of them polls that wait on their box: a thread that
sleeps on a socket costs some ten kilobytes. Polls wait while three quarters of the slots suffice for all."""

LONGEST_WAIT_SECONDS = 20
"""How long one poll waits on the box: a silent run costs three requests a minute."""

PIECE_BYTES = 256 * 1024
LARGEST_PIECE_BYTES = 512 * 1024
"""Asked for while a run is that far behind its log. In base64 it stays below a mebibyte, where providers cut answers, and
its redaction does not keep the other runs of the worker waiting."""
SMALLEST_PIECE_BYTES = 4 * 1024


FEW_STARTS = 4
START_SECONDS = 0.05
LONGEST_UNSEEN_SECONDS = 1.0
"""Of many runs that start together, each is first looked at when the others may have started too: a look costs as much as
half a start, and who waits for a start waits longer for each that comes before it."""


def policy_in_force(*, waits: bool, starts: int = 0) -> Policy:
    """The policy; without `waits` polls come back at once, because threads are short or a person steps by hand. `starts`
    is how many runs are being started now."""
    interval = box_api().run_poll_interval_ms / 1000
    first_look = min(LONGEST_UNSEEN_SECONDS, starts * START_SECONDS) if starts > FEW_STARTS else 0.0
    return Policy(interval=interval, wait=LONGEST_WAIT_SECONDS if waits else 0, first_look=first_look)


def piece_bytes(behind: int, step_failures: int) -> int:
    """How much of the log to ask for at once: more while much is left of it, less after answers that were cut."""
    wanted = LARGEST_PIECE_BYTES if behind >= LARGEST_PIECE_BYTES else PIECE_BYTES
    return max(SMALLEST_PIECE_BYTES, wanted >> min(step_failures, 20))
