"""One sentence for the errors that an operator meets when the embedded server is not there."""

from __future__ import annotations

import re

NOT_RUNNING = "PostgreSQL is not running; start it with `bin/up` or `manage.py embedded_postgres start`."
STARTING = "PostgreSQL is still starting; try again in a moment."
CLOSED = "PostgreSQL's socket is closed to this account; use the account that runs the installation."
MISMATCH = "Another account serves PostgreSQL's socket in the temporary folder; stop that server, or set STATE_DIR to a shorter path."
_SENTENCES = (
    (r'on socket ".*" failed: (No such file or directory|Connection refused)', NOT_RUNNING),
    (r"the database system is (starting up|not yet accepting connections|in recovery mode)", STARTING),
    (r"the database system is shutting down", NOT_RUNNING),
    (r'on socket ".*" failed: Permission denied', CLOSED),
    (r"requirepeer specifies", MISMATCH),
)


def explain(error: BaseException) -> str | None:
    """What to do about a failed connection to the embedded server, or None if this error is about something else.

    Takes psycopg's OperationalError, or Django's with psycopg's as its cause. Errors of connections over TCP are never explained.
    """
    text = str(error)
    for pattern, sentence in _SENTENCES:
        if "on socket" in text and re.search(pattern, text):
            return sentence
    return None
