"""One claimed run, with all that its next command needs: the threads that talk to boxes never read the database."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from boxes.client import BoxClient
from runs.decide import Action, Observation, Policy, RunView
from runs.scripts import GitCredential


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed run. `action` is what was decided at the claim; `generation` is what every write of ours must name."""

    id: UUID
    generation: int
    run: RunView
    claimed_at: datetime
    box_id: str
    run_directory: str
    command: str = field(repr=False)
    principal: dict[str, Any]
    policy: Policy
    action: Action
    client: BoxClient = field(repr=False)
    credential: GitCredential | None = None
    taken: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        """The database's time, counted on from the claim by this machine's steady clock."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.taken)

    def with_(self, **changes: Any) -> Task:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command brought: what it says of the run, and the raw log bytes from `offset` on."""

    seen: Observation
    offset: int = 0
    data: bytes = field(default=b"", repr=False)
