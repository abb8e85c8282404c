"""Where the next page of a listing begins: opaque to clients, except that of events, which they make themselves."""

from __future__ import annotations

import base64
import binascii
import re

from ..errors import bad_request

_SEQ = re.compile(rb"seq:(\d{1,18})")
_EVENT = re.compile(rb"\d{1,16}:.{1,200}", re.DOTALL)


def write(seq: int) -> str:
    return base64.urlsafe_b64encode(f"seq:{seq}".encode()).decode().rstrip("=")


def read(cursor: str | None) -> int | None:
    """The `seq` behind which the page begins. Raises ApiError 400 `invalid_cursor`."""
    if not cursor:
        return None
    found = _SEQ.fullmatch(_decoded(cursor))
    if not found:
        raise _invalid()
    return int(found[1])


def check_event_cursor(cursor: str | None) -> None:
    """base64url of `<timestamp in ms>:<event id>` without padding. Raises ApiError 400 `invalid_cursor`."""
    if cursor and not _EVENT.fullmatch(_decoded(cursor)):
        raise _invalid()


def _decoded(cursor: str) -> bytes:
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _invalid() from None


def _invalid() -> Exception:
    return bad_request("invalid_cursor", "cursor is not one that this server gave.")
