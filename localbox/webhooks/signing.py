"""The signature of a delivery: HMAC-SHA256 over delivery id, dot, timestamp, dot, raw body."""

from __future__ import annotations

import hashlib
import hmac


def signature(secret: str, *, delivery_id: str, timestamp: str, body: bytes) -> str:
    message = f"{delivery_id}.{timestamp}.".encode() + body
    return "v1=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
