"""The shapes of every id that the API speaks, and how new ones are made."""

from __future__ import annotations

import re
import secrets

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0, 1, i, l, o: an id survives being read aloud

BOX_ID = re.compile(rf"bx_[{ALPHABET}]{{8}}")
DELETION_ID = re.compile(r"bdop_[a-f0-9]{32}")
WEBHOOK_ID = re.compile(r"wh_[a-f0-9]{24}")


def box_id() -> str:
    return "bx_" + "".join(secrets.choice(ALPHABET) for _ in range(8))


def deletion_id() -> str:
    return f"bdop_{secrets.token_hex(16)}"


def webhook_id() -> str:
    return f"wh_{secrets.token_hex(12)}"


def webhook_secret() -> str:
    return f"whsec_{secrets.token_hex(32)}"


def event_id() -> str:
    return f"evt_{secrets.token_hex(16)}"


def request_id() -> str:
    return f"req_{secrets.token_hex(12)}"


def provider_key() -> str:
    return f"box_{secrets.token_urlsafe(32)}"
