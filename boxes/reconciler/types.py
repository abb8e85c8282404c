"""What a pass looks at and what it may decide. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from boxes.client import ProviderBox
from boxes.states import BoxState, EventType, SetupStatus, StopReason


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in force during one pass. `marker` is the name that boxes of ours carry.

    `claim_age`: a stop claim that is older is that of a dead process. `noted_for`: where the listing is evidence, a row that
    was noted as it is less than this long ago is not written again.
    """

    marker: str
    ttl_seconds: int
    maximum_lifetime_seconds: int
    idle_timeout: timedelta
    claim_age: timedelta
    noted_for: timedelta
    evidence: Literal["get", "list"]


@dataclass(frozen=True, slots=True)
class Row:
    """A ledger row as it was read after the listing. `idle_since` is None while something is alive in the box.

    `version` is another one after every write to the row.
    """

    pk: UUID
    box_id: str | None
    label: str
    generation: int
    created_at: datetime
    version: int = 0
    state: BoxState = BoxState.PROVISIONING
    setup_status: SetupStatus = SetupStatus.PENDING
    lease_expires_at: datetime | None = None
    extended_until: datetime | None = None
    last_activity_at: datetime | None = None
    stopped_at: datetime | None = None
    stop_reason: StopReason | None = None
    stop_requested_at: datetime | None = None
    stop_requested_reason: StopReason | None = None
    last_reconciled_at: datetime | None = None
    next_reconciliation_at: datetime | None = None
    reconciliation_failures: int = 0
    undone_sightings: int = 0
    idle_since: datetime | None = None
    is_askable: bool = True
    """The provider can be asked about an id like this one."""
    is_ours_to_mark: bool = False
    """It was created by us and is not known to carry our name yet."""


# --- what a pass saw of one row -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """The provider showed the box. `confirmed`: in an answer about this box alone, not only in the listing."""

    box: ProviderBox
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Missing:
    """The provider said, when asked about this box alone, that there is none."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer cannot be used. `counts`: it is held against the row, which backs off."""

    code: str
    counts: bool


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not asked: the provider wants to be left alone for `seconds`."""

    seconds: float


Observation = Seen | Missing | Failed | Deferred

# --- what may be decided --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that staff should see."""

    event_type: EventType
    reason: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Write nothing about the row. `unanswered`: it should have been looked at and could not be; `is_well`: it was."""

    why: str
    unanswered: bool = False
    is_well: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Look at the box by itself before anything is decided."""

    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """Write what was observed; the row is well."""

    state: BoxState
    setup_status: SetupStatus
    is_marked: bool = False
    needs_mark: bool = False
    notices: tuple[Notice, ...] = ()
    why: str = "observed"


@dataclass(frozen=True, slots=True)
class Stop:
    """Write what was observed, then stop the box."""

    note: Note
    reason: StopReason
    why: str


@dataclass(frozen=True, slots=True)
class End:
    """The provider has ended the box: end the row, and ask for nothing."""

    state: BoxState
    reason: StopReason
    cost_microusd: int | None
    why: str


@dataclass(frozen=True, slots=True)
class BackOff:
    """Hold a failure against the row; it is looked at again after a growing pause."""

    code: str
    notices: tuple[Notice, ...] = ()

    @property
    def why(self) -> str:
        return self.code


@dataclass(frozen=True, slots=True)
class PutOff:
    """Look at the row again after `seconds`, without holding anything against it."""

    seconds: float
    why: str = "the provider asked to be left alone"


Action = Leave | Ask | Note | Stop | End | BackOff | PutOff


@dataclass(frozen=True, slots=True)
class Decision:
    """One row, and what is done about it."""

    row: Row
    action: Action

    @property
    def notices(self) -> tuple[Notice, ...]:
        action = self.action.note if isinstance(self.action, Stop) else self.action
        return action.notices if isinstance(action, Note | BackOff) else ()


@dataclass
class PassResult:
    """What a pass did. `boxes`: ledger rows considered; `provider_boxes`: entries of the complete listing.

    `incomplete`: some row could not be looked at, some stop did not succeed, or there was no time for all of it.
    `skipped`: another pass was at work, and nothing was done here. `quiet_seconds`: for how long the provider asked to be
    left alone.
    """

    boxes: int = 0
    provider_boxes: int = 0
    observed: int = 0
    stopped: int = 0
    ended: int = 0
    failed: int = 0
    deferred: int = 0
    unanswered: int = 0
    lost_to_others: int = 0
    settled: int = 0
    leaks: int = 0
    leaks_stopped: int = 0
    undone: int = 0
    quiet_seconds: int = 0
    incomplete: bool = False
    skipped: bool = False
    decisions: list[Decision] = field(default_factory=list)

    def as_dict(self) -> dict[str, int | bool]:
        """The counts, for logs and slots."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int)}
