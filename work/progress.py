"""What an agent says while it works, in pieces that a machine sends: a secret that is cut in two by them is struck out all the same.

What can still become a secret is held back, sealed, on the delegation's row until the next piece or the end decides about it. Of
that the report shows meanwhile what is but a name, so that it seldom ends in the middle of a word; the next piece takes it back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from base.redaction import Redactor, RedactorState, holds_nothing_secret_yet
from base.sealing import SealBroken, seal, unseal
from work import reports
from work.models import Delegation

log = structlog.get_logger(__name__)

PURPOSE = "held progress"


@dataclass
class _Progress:
    """Where the redaction stands, and how many bytes at the end of the report are shown for the time being."""

    redactor: Redactor = field(default_factory=Redactor)
    shown_bytes: int = 0

    @classmethod
    def of(cls, delegation: Delegation) -> _Progress:
        if delegation.progress_state is None:
            return cls()
        try:
            stored = json.loads(unseal(PURPOSE, bytes(delegation.progress_state)))
        except SealBroken:
            log.error("held_progress_cannot_be_opened", job=str(delegation.pk))
            return cls()
        return cls(Redactor(state=RedactorState.from_json(stored["redactor"])), stored["shown_bytes"])

    def sealed(self) -> bytes:
        stored = {"redactor": self.redactor.state.to_json(), "shown_bytes": self.shown_bytes}
        return seal(PURPOSE, json.dumps(stored).encode())

    def settled(self, report: str) -> str:
        """The report without what is shown for the time being."""
        return report.encode()[: len(report.encode()) - self.shown_bytes].decode("utf-8", "ignore")


def heard(delegation: Delegation, report: str, piece: str) -> str:
    """The report with this piece, which follows those before it. The caller has locked the row, and saves `progress_state`."""
    progress = _Progress.of(delegation)
    parts = progress.redactor.feed(piece.encode("utf-8", "surrogatepass"))
    text = reports.appended(progress.settled(report), "".join(part.text for part in parts))
    held = progress.redactor.state.held.decode("utf-8", "ignore")
    shown = reports.appended(text, held) if holds_nothing_secret_yet(held) else text
    progress.shown_bytes = len(shown.encode()) - len(text.encode())
    delegation.progress_state = progress.sealed()
    return shown


def settled(job_id: UUID, report: str) -> str:
    """The report of an attempt that says nothing more: what was held back of it is told, secrets struck out, and no longer
    kept. The caller has locked the job."""
    delegation = Delegation.objects.filter(pk=job_id, progress_state__isnull=False).first()
    if delegation is None:
        return report
    Delegation.objects.filter(pk=job_id).update(progress_state=None)
    progress = _Progress.of(delegation)
    rest = "".join(part.text for part in progress.redactor.flush())
    return reports.appended(progress.settled(report), rest)
