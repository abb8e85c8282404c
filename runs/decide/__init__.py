"""What a run needs next, and what an answer of its box means. Pure: no database, no network, no clock.

`decide(run, seen, now, policy)` has two halves. With `seen` None it says what to ask the box now, or that nothing is to be
asked; with an `Observation` it says what to write. Every rule about the life of a run is in this package.
"""

from __future__ import annotations

from datetime import datetime

from runs.decide.commands import next_command
from runs.decide.judgement import judge
from runs.decide.types import (
    Action,
    End,
    Hold,
    Observation,
    Policy,
    Rest,
    RunView,
    Send,
    Step,
    Trouble,
    TroubleKind,
    Write,
)

__all__ = [
    "Action",
    "End",
    "Hold",
    "Observation",
    "Policy",
    "Rest",
    "RunView",
    "Send",
    "Step",
    "Trouble",
    "TroubleKind",
    "Write",
    "decide",
]


def decide(run: RunView, seen: Observation | None, now: datetime, policy: Policy) -> Action:
    """The next action for `run` at `now`.

    Without an observation: `Send` (one command to the box), `Hold` (not yet), `Write` (end it without asking) or `Rest`
    (nothing will ever be due again). With one: always `Write`.
    """
    if seen is None:
        return next_command(run, now, policy)
    return judge(run, seen, now, policy)
