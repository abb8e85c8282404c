"""Boxes over HTTP: views check the body, call one service, and show the row."""

from __future__ import annotations

from base.api.errors import register_statuses
from boxes.errors import DETAIL_BY_CODE, PUBLIC_CODE, STATUS_BY_CODE, ProviderCode

# The code of a malformed id is shown as a general one, whose sentence is its own.
DETAILS = {code: detail for code, detail in DETAIL_BY_CODE.items() if code != ProviderCode.MALFORMED_ID} | {
    "invalid_command": "A command is valid UTF-8 text, not blank, without NUL, of at most 4,000 bytes; of a run, 8,000."
}

register_statuses(STATUS_BY_CODE, PUBLIC_CODE, DETAILS)
