"""Pairing a computer with its owner: it shows a code, the owner approves it, it fetches its token once."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from accounts.models import User
from base.clock import database_now
from base.errors import CodedError
from base.faults import declare, fault_point
from base.sealing import seal, unseal
from base.transitions import move
from work import limits
from work.errors import (
    PairingConsumed,
    PairingExpired,
    PairingNotFound,
    PairingPending,
    TooManyMachines,
)
from work.machines import descriptions, secrets
from work.machines.revoking import revoke_machine
from work.models import Machine, MachinePairing
from work.states import OPEN_PAIRINGS, MachineStatus, PairingStatus

log = structlog.get_logger(__name__)

CLAIMED = declare("machines.claimed", "a pairing is claimed; the machine has not got its token")


@dataclass(frozen=True, slots=True)
class StartedPairing:
    """What the computer gets: the code is for its owner's eyes, the poll secret for itself. Neither is kept."""

    id: UUID
    code: str
    poll_secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """What a computer gets when its owner has approved: its token, this one time."""

    machine: Machine
    token: str


def start_pairing(
    *, name: str, tier: str, platform: str = "", agent_version: str = "", roots: list[str] | None = None
) -> StartedPairing:
    """Ask for a computer to be paired. Nothing is granted by it; it expires after ten minutes. Raises PairingInvalid."""
    folders = [] if roots is None else roots
    descriptions.check(name, tier, platform, agent_version, folders)
    code, poll_secret, now = secrets.new_code(), secrets.new_secret(), database_now()
    pairing = MachinePairing.objects.create(
        code_digest=secrets.code_digest(code),
        poll_secret_digest=secrets.secret_digest(poll_secret),
        name=name.strip(),
        tier=tier,
        platform=platform,
        agent_version=agent_version,
        roots=folders,
        expires_at=now + limits.PAIRING_LIFE,
        created_at=now,
    )
    return StartedPairing(pairing.pk, code, poll_secret, pairing.expires_at)


def find_pairing(code: str) -> MachinePairing:
    """The pairing that waits under this code, for its owner to look at before approving. Raises PairingNotFound and
    PairingExpired."""
    pairing = MachinePairing.objects.filter(code_digest=secrets.code_digest(code)).first()
    return _open(pairing, database_now())


def approve_pairing(user: User, code: str) -> Machine:
    """Make the computer that shows this code a machine of the user; its token waits, sealed, to be fetched.

    Case and separators of the code do not count. Raises PairingNotFound, PairingExpired, PairingConsumed and
    TooManyMachines (at most 8 that are active and not expired, however many are approved at once).
    """
    with transaction.atomic():
        pairings = MachinePairing.objects.select_for_update()
        pairing = pairings.filter(code_digest=secrets.code_digest(code)).first()
        now = database_now()
        pairing = _open(pairing, now)
        if User.objects.select_for_update(no_key=True).get(pk=user.pk).deleted_at is not None:
            raise PairingNotFound
        active = Machine.objects.filter(user=user, status=MachineStatus.ACTIVE, token_expires_at__gt=now)
        if active.count() >= limits.MACHINES_PER_OWNER:
            raise TooManyMachines
        token = secrets.new_token()
        machine = _make_machine(user, pairing, token, now)
        pairing.status, pairing.machine = PairingStatus.APPROVED, machine
        pairing.sealed_token = seal(_purpose(pairing.pk), token.encode())
        pairing.save(update_fields=["status", "machine", "sealed_token"])
    log.info("machine_paired", machine=str(machine.pk), user=str(user.pk))
    return machine


def claim_pairing(pairing_id: UUID | str, poll_secret: str) -> Claim:
    """Fetch the token, once. Raises PairingPending, PairingConsumed, PairingExpired, and PairingNotFound for a pairing
    that is not there or another's secret."""
    try:
        wanted = UUID(str(pairing_id))
    except ValueError:
        raise PairingNotFound from None
    with transaction.atomic():
        pairing = MachinePairing.objects.select_for_update(of=("self",)).filter(pk=wanted).first()
        answer = _claimed(pairing, poll_secret, database_now())
    if isinstance(answer, CodedError):
        _revoke_machine_of_expired(pairing)
        raise answer
    fault_point(CLAIMED)
    return answer


def expire_pairings() -> int:
    """End what was not claimed in time, and revoke the machines made by it; returns how many. Every minute."""
    now = database_now()
    overdue = MachinePairing.objects.filter(status__in=list(OPEN_PAIRINGS), expires_at__lte=now)
    count = 0
    for pairing in overdue.select_related("machine"):
        if _expire(pairing):
            count += 1
            _revoke_machine_of_expired(pairing)
    _finish_revocations()
    return count


def forget_pairings() -> int:
    """Delete what expired a day ago without having become a machine, since anybody may ask to be paired; returns how many."""
    nothing = MachinePairing.objects.filter(status=PairingStatus.EXPIRED, machine=None)
    return nothing.filter(expires_at__lt=database_now() - limits.EXPIRED_PAIRING_KEPT).delete()[0]


def _claimed(pairing: MachinePairing | None, poll_secret: str, now: datetime) -> Claim | CodedError:
    """The claim, or the refusal: an expiry is written, so it must not be raised inside the transaction."""
    if pairing is None or not _is_secret_of(pairing, poll_secret):
        return PairingNotFound()
    if pairing.status in OPEN_PAIRINGS and pairing.expires_at <= now:
        _expire(pairing)
        return PairingExpired()
    if pairing.status == PairingStatus.PENDING:
        return PairingPending()
    if pairing.status != PairingStatus.APPROVED or pairing.sealed_token is None or pairing.machine is None:
        return PairingConsumed() if pairing.status == PairingStatus.CLAIMED else PairingExpired()
    token = unseal(_purpose(pairing.pk), bytes(pairing.sealed_token)).decode()
    pairing.status, pairing.sealed_token = PairingStatus.CLAIMED, None
    pairing.save(update_fields=["status", "sealed_token"])
    return Claim(pairing.machine, token)


def _open(pairing: MachinePairing | None, now: datetime) -> MachinePairing:
    """The pairing if it waits for its owner. Raises PairingNotFound, PairingExpired or PairingConsumed."""
    if pairing is None:
        raise PairingNotFound
    if pairing.status == PairingStatus.EXPIRED or (
        pairing.status in OPEN_PAIRINGS and pairing.expires_at <= now
    ):
        raise PairingExpired
    if pairing.status != PairingStatus.PENDING:
        raise PairingConsumed
    return pairing


def _make_machine(user: User, pairing: MachinePairing, token: str, now: datetime) -> Machine:
    return Machine.objects.create(
        user=user,
        name=pairing.name,
        tier=pairing.tier,
        platform=pairing.platform,
        agent_version=pairing.agent_version,
        roots=pairing.roots,
        token_digest=secrets.secret_digest(token),
        token_expires_at=now + limits.TOKEN_LIFE,
        created_at=now,
    )


def _expire(pairing: MachinePairing) -> bool:
    to: dict[str, Any] = {"status": PairingStatus.EXPIRED, "sealed_token": None}
    rows = MachinePairing.objects.filter(pk=pairing.pk)
    if not move(rows, where={"status__in": list(OPEN_PAIRINGS)}, to=to):
        return False
    pairing.status, pairing.sealed_token = PairingStatus.EXPIRED, None
    return True


def _revoke_machine_of_expired(pairing: MachinePairing | None) -> None:
    """Nobody can have the token of a machine whose pairing expired."""
    if pairing is not None and pairing.status == PairingStatus.EXPIRED and pairing.machine is not None:
        revoke_machine(pairing.machine)


def _finish_revocations() -> None:
    """Revoke what an expiry before this one left active because its process died in between."""
    for machine in Machine.objects.filter(status=MachineStatus.ACTIVE, pairing__status=PairingStatus.EXPIRED):
        revoke_machine(machine)


def _is_secret_of(pairing: MachinePairing, poll_secret: Any) -> bool:
    digest = secrets.secret_digest(poll_secret) if isinstance(poll_secret, str) else b""
    return hmac.compare_digest(bytes(pairing.poll_secret_digest), digest)


def _purpose(pairing_id: UUID) -> str:
    return f"machine pairing {pairing_id}"
