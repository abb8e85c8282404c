"""Paired computers for tests."""

from __future__ import annotations

from accounts.models import User
from work.machines import approve_pairing, claim_pairing, start_pairing
from work.models import Machine


def paired_machine(owner: User, name: str = "laptop") -> tuple[Machine, str]:
    """A computer of the owner's and its token."""
    started = start_pairing(name=name, tier="shell", roots=["/srv/code"])
    approve_pairing(owner, started.code)
    claim = claim_pairing(started.id, started.poll_secret)
    return claim.machine, claim.token
