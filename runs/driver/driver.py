"""The driver of runs for `base.pump`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import structlog
from django.db import connection

from base.faults import declare, fault_point
from base.pump import Holder, Outcome
from boxes.client import BoxClient, Gate, client
from boxes.conf import box_api
from runs.decide import Policy, Send, Step, decide
from runs.driver import claim, credentials, settle
from runs.driver.calls import call
from runs.driver.claim import Claimed
from runs.driver.task import Reply, Task
from runs.policy import SLOTS, policy_in_force
from runs.services.recovery import make_unheld_due, release_orphans

log = structlog.get_logger(__name__)

KILL_ANSWER_SECONDS = 12.0
"""When the answer of a kill counts as overdue: it may take its ten seconds on the box."""

OVERDUE_SECONDS = 1.0
"""How long past its deadline a run waits for an answer that is on its way, beyond the poll interval at most."""

ORPHANS_EVERY_SECONDS = 1.0

CLAIMED = declare(
    "runs.claimed", "due runs are claimed, and where it is due the right to dispatch; nothing is sent"
)
MARKED = declare("runs.marked", "kills and probes are noted on their rows; nothing is sent")
SENDING = declare("runs.sending", "a command is about to be sent to a box")
ANSWERED = declare("runs.answered", "a box has answered a command; nothing is recorded")


class RunDriver:
    """Drives runs: what is due is claimed set-wise, commands go out from threads, answers are written in batches."""

    name = "runs"

    def __init__(self, slots: int = SLOTS, *, waits: bool = True, recovers: bool = False) -> None:
        """`waits`: whether polls may wait on their box; by hand they come back at once. `recovers`: whether the first claim
        takes up every run that nobody drives, as a worker does at its start."""
        self.slots = slots
        self._waits = waits
        self._recovers = recovers
        self._gate = Gate()
        self._in_flight: set[UUID] = set()
        self._starting: set[UUID] = set()
        self._orphans_at = 0.0

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        """At most `limit` due runs, each with the command it needs; what needs none is written at once."""
        self._release_orphans()
        patience = min(box_api().run_poll_interval_ms / 1000, OVERDUE_SECONDS)
        found = claim.claim_due(holder, limit, patience)
        if not found:
            return []
        fault_point(CLAIMED)
        waits = self._waits and len(self._in_flight) + len(found) <= self.slots * 3 // 4
        starts = len(self._starting) + sum(row.view.may_dispatch for row in found)
        tasks = self._prepared(found, policy_in_force(waits=waits, starts=starts), client(gate=self._gate))
        self._starting.update(task.id for task in tasks if _step(task) == Step.DISPATCH)
        self._in_flight.update(task.id for task in tasks)
        return tasks

    def claim_one(self, run_id: UUID, holder: Holder) -> Task | None:
        """This run, due or not, if nobody holds it and it needs a command; what needs none is written at once."""
        found = claim.claim_one(run_id, holder)
        if found is None:
            return None
        fault_point(CLAIMED)
        tasks = self._prepared([found], policy_in_force(waits=False), client(), ignore_pause=True)
        self._in_flight.update(task.id for task in tasks)
        return tasks[0] if tasks else None

    def perform(self, task: Task) -> Reply:
        """The one command that the task needs now. Never touches the database."""
        fault_point(SENDING)
        reply = call(task)
        fault_point(ANSWERED)
        return reply

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """Write what the commands told, each only if this worker still holds the run."""
        answered = {outcome.task.id for outcome in outcomes}
        self._in_flight -= answered
        self._starting -= answered
        settle.settle(outcomes)

    def only_looks(self, task: Task) -> bool:
        """A poll may wait on its box for a long time; what it would have told is asked for again."""
        return _step(task) == Step.POLL

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Make these runs due and free, each only if it is still held for this task."""
        claim.give_back([(task.id, task.generation) for task in tasks])

    def seconds_until_due(self) -> float | None:
        """Until the next run is due, or an answer overdue; None if no run needs anything."""
        with connection.cursor() as cursor:
            cursor.execute("select extract(epoch from min(next_step_at) - clock_timestamp()) from box_runs")
            row = cursor.fetchone()
        return max(0.0, float(row[0])) if row and row[0] is not None else None

    def _prepared(
        self,
        found: Sequence[Claimed],
        policy: Policy,
        box_client: BoxClient,
        *,
        ignore_pause: bool = False,
    ) -> list[Task]:
        tasks = [_task(row, policy, box_client, ignore_pause=ignore_pause) for row in found]
        settle.settle_undone([task for task in tasks if not isinstance(task.action, Send)])
        return credentials.handed_over(_marked([task for task in tasks if isinstance(task.action, Send)]))

    def _release_orphans(self) -> None:
        if time.monotonic() - self._orphans_at < ORPHANS_EVERY_SECONDS:
            return
        self._orphans_at = time.monotonic()
        if released := release_orphans():
            log.warning("runs_taken_over", count=released)
        if self._recovers and (found := make_unheld_due()):
            log.info("runs_found_at_start", count=found)
        self._recovers = False


def _task(row: Claimed, policy: Policy, box_client: BoxClient, *, ignore_pause: bool) -> Task:
    view = replace(row.view, calls_resume_at=None) if ignore_pause else row.view
    return Task(
        id=row.id,
        generation=row.generation,
        run=view,
        claimed_at=row.claimed_at,
        box_id=row.box_id,
        run_directory=row.run_directory,
        command=row.command,
        principal=row.principal,
        policy=policy,
        action=decide(view, None, row.claimed_at, policy),
        client=box_client,
    )


def _marked(tasks: list[Task]) -> list[Task]:
    """The tasks that are still ours once what they will send is noted on their rows."""
    kept = {task.id for task in tasks if _step(task) in (Step.DISPATCH, Step.POLL)}
    for step in (Step.KILL, Step.PROBE):
        rows = [(task.id, task.generation) for task in tasks if _step(task) == step]
        if rows:
            kept |= claim.mark(rows, kills=step == Step.KILL, answer_seconds=KILL_ANSWER_SECONDS)
            fault_point(MARKED)
    return [task for task in tasks if task.id in kept]


def _step(task: Task) -> Step | None:
    return task.action.step if isinstance(task.action, Send) else None
