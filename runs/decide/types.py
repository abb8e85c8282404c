"""The words of the decision: what is known of a run, what was seen, what is to be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from runs.states import TERMINAL, RunState


class Step(StrEnum):
    """One command to the box."""

    DISPATCH = "dispatch"  # start it; sent at most once
    PROBE = "probe"  # did an unanswered dispatch arrive?
    POLL = "poll"  # how is it, and what did it print?
    KILL = "kill"  # end it and everything that belongs to it


class TroubleKind(StrEnum):
    """Why a command brought no usable answer."""

    GONE = "gone"  # the box takes no commands any more
    REFUSED = "refused"  # it did not happen
    RETRY_LATER = "retry_later"  # it did not happen, and may later
    UNKNOWN = "unknown"  # it may have happened


@dataclass(frozen=True, slots=True)
class Trouble:
    """A command without a usable answer. `retry_after_seconds` is what the provider asked for, if it did."""

    kind: TroubleKind
    code: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunView:
    """What the decision reads of a row.

    `may_dispatch` is true only for the holder that won the one right to dispatch, in the statement that claimed the row.
    `is_overdue` says that an earlier holder was still waiting for an answer when the run had to end.
    """

    state: RunState
    deadline_at: datetime
    may_dispatch: bool = False
    is_overdue: bool = False
    is_box_gone: bool = False
    dispatch_attempted_at: datetime | None = None
    cancellation_requested_at: datetime | None = None
    cancellation_effective_at: datetime | None = None
    calls_resume_at: datetime | None = None
    started_at: datetime | None = None
    pid: int | None = None
    exit_status: int | None = None
    exit_signal: str | None = None
    failure_reason: str | None = None
    kill_confirmed: bool | None = None
    kill_attempts: int = 0
    dead_sightings: int = 0
    quiet_polls: int = 0
    step_failures: int = 0
    received: int = 0  # bytes of its log that we have
    log_size: int = 0

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def has_ended(self) -> bool:
        """Whether its end is known and only the rest of its output is missing."""
        return self.exit_status is not None or self.kill_confirmed is True


@dataclass(frozen=True, slots=True)
class Observation:
    """What one command told. None is "not said". `received` counts the log bytes that came, from the run's own offset.

    `log_end` is how long the log was when the run ended: children may write on after it. `waited_seconds` is how long the
    command took, as a poll that waits on the box does.
    """

    step: Step
    trouble: Trouble | None = None
    never_ran: str | None = None  # why the box says that the command was not started and never will be
    present: bool | None = None
    pid: int | None = None
    alive: bool | None = None
    exit_status: int | None = None
    exit_signal: str | None = None
    out_of_memory: bool = False
    killed: bool | None = None
    log_size: int | None = None
    log_end: int | None = None
    received: int = 0
    is_cut: bool = False  # bytes were announced that did not arrive
    asked_to_wait: int = 0
    waited_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """The numbers of the decision, in seconds.

    `interval` is the longest time between two looks; `wait` how long a poll may wait on the box for news (0: not at all);
    `first_look` how long after its start such a poll is sent.
    A run is `young` for that long and looked at `fastest`; while it prints, every `talking`. `start_patience` is how long
    a dispatch may still be on its way; `sightings` how often in a row a run must be seen dead; after `away_after` calls
    in a row without an answer the provider counts as away; after `drain_attempts` answered looks that brought nothing, the rest of
    an ended run's output is given up, and so it is `longest_drain` after its deadline or its cancellation.
    """

    interval: float = 1.0
    wait: int = 0
    first_look: float = 0.0
    young: float = 3.0
    fastest: float = 0.1
    talking: float = 0.2
    longest_backoff: float = 10.0
    start_patience: float = 45.0
    sightings: int = 2
    away_after: int = 3
    drain_attempts: int = 8
    longest_drain: float = 60.0


class RunChanges(TypedDict, total=False):
    """Columns to write."""

    state: RunState
    pid: int | None
    dispatch_attempted_at: datetime | None
    dispatched_at: datetime
    started_at: datetime
    calls_resume_at: datetime | None
    cancellation_effective_at: datetime
    exit_status: int | None
    exit_signal: str | None
    failure_reason: str | None
    kill_confirmed: bool
    dead_sightings: int
    quiet_polls: int
    step_failures: int
    log_size: int


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run. `missing_bytes` of its log were never received."""

    state: RunState
    reason: str | None = None
    missing_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Ask the box now; a poll may wait there for `wait_seconds`."""

    step: Step
    wait_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """Ask nothing before `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is to be done for this run, now or later."""


@dataclass(frozen=True, slots=True)
class Write:
    """What to write, whether the run ends, and in how many seconds to look again (None: never)."""

    next_in: float | None
    changes: RunChanges = field(default_factory=lambda: RunChanges())
    end: End | None = None


Action = Send | Hold | Rest | Write
