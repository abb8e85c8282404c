"""Secrets, and signatures after the Standard Webhooks convention."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from standardwebhooks import Webhook

from base.sealing import seal, unseal

PREFIX = "whsec_"
SECRET_BYTES = 32
OVERLAP_HOURS = 24
"""How long deliveries are signed with the secret before as well, after another was made."""


def new_secret() -> str:
    """A secret as its receiver is shown it, once: `whsec_` and base64."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def sealed(webhook: UUID, secret: str) -> bytes:
    """The secret as the table keeps it; good for this webhook alone."""
    return seal(_purpose(webhook), secret.encode())


def opened(webhook: UUID, kept: bytes) -> str:
    """The secret again. Raises base.sealing.SealBroken."""
    return unseal(_purpose(webhook), bytes(kept)).decode()


def headers(message_id: str, at: datetime, body: str, secrets: Sequence[str]) -> dict[str, str]:
    """The three headers by which a receiver knows that a delivery is ours, and which. One signature for each secret."""
    signatures = [Webhook(secret).sign(message_id, at, body) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _purpose(webhook: UUID) -> str:
    return f"the secret of webhook {webhook}"
