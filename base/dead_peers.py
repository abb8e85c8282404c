"""How soon either end of a connection to the database learns that the other is gone without a word: a machine that lost its
power or its network closes nothing.

By itself a kernel asks after two hours. Until then a worker would wait for an answer that cannot come, and the server would keep the
sign of life, the locks and the transactions of a worker that is no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SILENT_SECONDS = 10
ASKED_EVERY_SECONDS = 5
TIMES_ASKED = 3
UNANSWERED_MS = 25_000
CONNECT_SECONDS = 10
_SERVER = {
    "tcp_keepalives_idle": SILENT_SECONDS,
    "tcp_keepalives_interval": ASKED_EVERY_SECONDS,
    "tcp_keepalives_count": TIMES_ASKED,
    "tcp_user_timeout": UNANSWERED_MS,
}


def noticed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a connection with those by which both ends notice; what is named already stays as it is.

    A unix socket has no network to lose, and takes no notice of any of them.
    """
    ours = {
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": SILENT_SECONDS,
        "keepalives_interval": ASKED_EVERY_SECONDS,
        "keepalives_count": TIMES_ASKED,
        "tcp_user_timeout": UNANSWERED_MS,
        "options": " ".join(f"-c {name}={value}" for name, value in _SERVER.items()),
    }
    return ours | dict(options)
