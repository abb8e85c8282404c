"""The bounds of a machine's channel, with their units."""

from __future__ import annotations

PROTOCOL = 1

FRAME_BYTES = 65_536
"""One frame as JSON, either way."""

BODY_BYTES = 524_288
"""One request of a machine: several frames."""

FRAMES_AT_ONCE = 32

POLL_SECONDS = 25
"""The longest that a poll of a machine is held: proxies cut silent connections after thirty."""

ONLINE_SECONDS = 45
"""A machine that was not heard of for this long is offline: it polls every 25 s at least."""

PRESENCE_SECONDS = 10
"""When a machine was last heard of is noted at most this often."""

REQUESTS_PER_MINUTE = 600
POLLS_PER_MINUTE = 120

CHECK_SECONDS = 10
"""How long a machine may take to say whether it would take a delegation."""

PROBE_SECONDS = 15
"""How long a machine may take to look which agents it has."""

SESSION_ID_CHARACTERS = 512
NAME_CHARACTERS = 128
COMMIT_CHARACTERS = 64
AGENTS = 32
DETAIL_CHARACTERS = 500
PERMISSIONS_KEPT = 20
PERMISSIONS_BYTES = 16_384
PROGRESS_BYTES = 16_384
PROSE_CHARACTERS = 2_000
CUT_MARK = "\n[…]"
"""Where a text was cut."""
