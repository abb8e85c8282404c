"""A user's own computers: pairing them, knowing them by their tokens, revoking them."""

from __future__ import annotations

from work.machines.pairing import (
    Claim,
    StartedPairing,
    approve_pairing,
    claim_pairing,
    expire_pairings,
    find_pairing,
    forget_pairings,
    start_pairing,
)
from work.machines.revoking import revoke_machine
from work.machines.tokens import authenticate_token

__all__ = [
    "Claim",
    "StartedPairing",
    "approve_pairing",
    "authenticate_token",
    "claim_pairing",
    "expire_pairings",
    "find_pairing",
    "forget_pairings",
    "revoke_machine",
    "start_pairing",
]
