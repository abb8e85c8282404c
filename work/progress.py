"""What an agent says while it works, in pieces that a machine sends: a secret that is cut in two by them is struck out all the same.

What can still become a secret is held back, sealed, on the delegation's row until the next piece or the end decides about it.
"""

from __future__ import annotations

import json
from uuid import UUID

import structlog

from base.redaction import Redactor, RedactorState
from base.sealing import SealBroken, seal, unseal
from work.models import Delegation

log = structlog.get_logger(__name__)

PURPOSE = "held progress"


def heard(delegation: Delegation, piece: str) -> str:
    """What became readable by this piece, which follows those before it. The caller has locked the row, and saves
    `progress_state`."""
    redactor = _redactor(delegation)
    readable = "".join(part.text for part in redactor.feed(piece.encode("utf-8", "surrogatepass")))
    delegation.progress_state = seal(PURPOSE, json.dumps(redactor.state.to_json()).encode())
    return readable


def take_rest(job_id: UUID) -> str:
    """What was held back of an attempt that says nothing more, secrets struck out; it is no longer kept. The caller has locked the job."""
    delegation = Delegation.objects.filter(pk=job_id, progress_state__isnull=False).first()
    if delegation is None:
        return ""
    Delegation.objects.filter(pk=job_id).update(progress_state=None)
    return "".join(part.text for part in _redactor(delegation).flush())


def _redactor(delegation: Delegation) -> Redactor:
    if delegation.progress_state is None:
        return Redactor()
    try:
        stored = json.loads(unseal(PURPOSE, bytes(delegation.progress_state)))
    except SealBroken:
        log.error("held_progress_cannot_be_opened", job=str(delegation.pk))
        return Redactor()
    return Redactor(state=RedactorState.from_json(stored))
