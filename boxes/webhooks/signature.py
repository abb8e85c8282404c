"""Whether a delivery comes from the provider, and now. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from boxes.client.bodies import json_object, text

REPLAY_WINDOW = timedelta(minutes=5)
_DELIVERY_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)
_SECONDS = re.compile(r"\d{1,12}", re.ASCII)


class Untrusted(Exception):
    """The delivery is not signed with our secret, or not from now. Why is nobody's business outside."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a delivery says: its id, the event in the words of `box`, and the provider's id of the box, if it names one."""

    id: str
    event_type: str
    box_id: str | None


def verified(headers: Mapping[str, str], body: bytes, *, secret: str, now: datetime) -> Delivery:
    """The delivery, if its signature is right and its time is within five minutes of `now`. Raises Untrusted.

    A body that is signed and holds nothing that can be read names no box.
    """
    delivery_id, stamp = headers.get("X-Ascii-Delivery", ""), headers.get("X-Ascii-Timestamp", "")
    if not _DELIVERY_ID.fullmatch(delivery_id) or not _SECONDS.fullmatch(stamp):
        raise Untrusted
    if abs(now - datetime.fromtimestamp(0, UTC) - timedelta(seconds=int(stamp))) > REPLAY_WINDOW:
        raise Untrusted
    expected = hmac.new(
        secret.encode(), f"{delivery_id}.{stamp}.".encode() + body, hashlib.sha256
    ).hexdigest()
    if not hmac.compare_digest(headers.get("X-Ascii-Signature", "").encode(), f"v1={expected}".encode()):
        raise Untrusted
    return _said(delivery_id, json_object(body) or {})


def _said(delivery_id: str, event: Mapping[str, Any]) -> Delivery:
    data = event.get("data")
    shown = (
        next((data[noun] for noun in ("box", "sandbox") if noun in data), None)
        if isinstance(data, dict)
        else None
    )
    kind = (text(event, "type") or "unknown").replace("sandbox.", "box.", 1)
    return Delivery(delivery_id, kind[:64], text(shown, "id") if isinstance(shown, dict) else None)
