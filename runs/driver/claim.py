"""Claiming due runs: one statement takes the lease, the generation and, where it is due, the right to dispatch.

A held row is due again when its holder's answer is overdue: at the end of the lease, or shortly after the deadline of the
run, so that a provider that hangs cannot keep a run alive. In-flight rows are thus not looked at by the claims between.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from base import leases
from base.pump import Holder
from runs.decide import RunView
from runs.states import ACTIVE, TERMINAL, RunState

LONGEST_CALL_SECONDS = 60
"""A lease outlasts the longest command, its own time and the client's margin."""

_ACTIVE = ", ".join(f"'{state.value}'" for state in ACTIVE)
_TERMINAL = ", ".join(f"'{state.value}'" for state in TERMINAL)

# Who takes this away from an earlier holder finds the run past its deadline: it ends it without asking.
_DUE = f"""
    run.next_step_at <= clock_timestamp()
    and ({leases.free("run")} or (run.state in ({_ACTIVE}) and run.deadline_at <= clock_timestamp()))
"""
_THIS_ONE = f"run.id = %(id)s and {leases.free('run')}"

# The right to dispatch is given once: by this condition and the row's lock.
_MAY_DISPATCH = """
    run.state = 'admitted' and run.dispatch_attempted_at is null and run.cancellation_requested_at is null
    and run.deadline_at > clock_timestamp() and box.stopped_at is null and box.box_id is not null
    and (%(ignore_pause)s or run.calls_resume_at is null or run.calls_resume_at <= clock_timestamp())
"""

_CLAIM = """
    with due as (
        select run.id, box.box_id, box.stopped_at is not null as is_box_gone, ({may_dispatch}) as may_dispatch,
               not {free} as was_held
        from box_runs run join conversation_boxes box on box.id = run.conversation_box_id
        where {which}
        order by run.next_step_at limit %(limit)s
        for update of run {locked})
    update box_runs run set {take},
        next_step_at = case when run.state in ({terminal})
            then clock_timestamp() + make_interval(secs => %(lease)s)
            else least(clock_timestamp() + make_interval(secs => %(lease)s),
                       greatest(run.deadline_at, clock_timestamp()) + make_interval(secs => %(patience)s)) end,
        dispatch_attempted_at = case when due.may_dispatch then clock_timestamp() else run.dispatch_attempted_at end
    from due where run.id = due.id
    returning run.id, run.generation, clock_timestamp(), coalesce(due.box_id, ''), run.run_directory, run.command,
        run.requesting_principal, run.state, run.deadline_at, due.may_dispatch, due.was_held, due.is_box_gone,
        run.dispatch_attempted_at, run.cancellation_requested_at, run.cancellation_effective_at, run.calls_resume_at,
        run.started_at, run.pid, run.exit_status, run.exit_signal, run.failure_reason, run.kill_confirmed,
        run.kill_attempts, run.dead_sightings, run.quiet_polls, run.step_failures,
        greatest(run.received_offset, run.last_output_offset), run.log_size
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed row, as the database has it."""

    id: UUID
    generation: int
    claimed_at: datetime
    box_id: str
    run_directory: str
    command: str
    principal: dict[str, Any]
    view: RunView


def claim_due(holder: Holder, limit: int, patience_seconds: float) -> list[Claimed]:
    """At most `limit` due runs, leased to `holder`."""
    return _claim(
        _DUE, "skip locked", holder, {"limit": limit, "patience": patience_seconds, "ignore_pause": False}
    )


def claim_one(run_id: UUID, holder: Holder) -> Claimed | None:
    """This run, due or not, unless somebody else holds it; waits for who is just writing it. A pause that the provider asked for does not count."""
    found = _claim(_THIS_ONE, "", holder, {"id": run_id, "limit": 1, "patience": 0, "ignore_pause": True})
    return found[0] if found else None


def mark(claimed: Sequence[tuple[UUID, int]], *, kills: bool, answer_seconds: float = 0.0) -> set[UUID]:
    """Note, before it is sent, that these runs are killed (or else probed) now; returns those still ours.

    A kill that was sent counts as not confirmed until an answer says otherwise.
    """
    sql = _MARK_KILL if kills else _MARK_PROBE
    with connection.cursor() as cursor:
        cursor.execute(
            sql,
            {
                "ids": [run_id for run_id, _ in claimed],
                "generations": [generation for _, generation in claimed],
                "answer": answer_seconds,
            },
        )
        return {row[0] for row in cursor.fetchall()}


def give_back(claimed: Sequence[tuple[UUID, int]]) -> None:
    """These runs are due at once, and held by nobody."""
    ids, generations = [run_id for run_id, _ in claimed], [generation for _, generation in claimed]
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_BACK, {"ids": ids, "generations": generations})


_LOCKED = "with locked as (select id from box_runs where id = any(%(ids)s::uuid[]) order by id for update)"
_OURS = """
    from unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as mine(id, generation)
    where run.id in (select id from locked) and run.id = mine.id and run.generation = mine.generation returning run.id
"""
_MARK_KILL = f"""
    {_LOCKED} update box_runs run set kill_attempts = run.kill_attempts + 1, kill_confirmed = coalesce(run.kill_confirmed, false),
        next_step_at = greatest(run.next_step_at, clock_timestamp() + make_interval(secs => %(answer)s))
    {_OURS}
"""  # noqa: S608 - constants of ours
_GIVE_BACK = f"""
    {_LOCKED} update box_runs run set {leases.RELEASE}, next_step_at = clock_timestamp() {_OURS}
"""  # noqa: S608
_MARK_PROBE = f"""
    {_LOCKED} update box_runs run set probe_attempts = run.probe_attempts + 1, probe_attempted_at = clock_timestamp()
    {_OURS}
"""  # noqa: S608


def _claim(which: str, locked: str, holder: Holder, values: dict[str, Any]) -> list[Claimed]:
    lease = max(holder.lease_seconds, LONGEST_CALL_SECONDS)
    take = leases.take("run").replace("%s", "%(owner)s", 1).replace("%s", "%(lease)s", 1)
    sql = _CLAIM.format(
        which=which,
        locked=locked,
        take=take,
        free=leases.free("run"),
        may_dispatch=_MAY_DISPATCH,
        terminal=_TERMINAL,
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, {**values, "owner": holder.owner, "lease": lease})
        rows = cursor.fetchall()
    return [_claimed(row) for row in rows]


def _claimed(row: Sequence[Any]) -> Claimed:
    view = RunView(
        state=RunState(row[7]),
        deadline_at=row[8],
        may_dispatch=row[9],
        is_overdue=row[10],
        is_box_gone=row[11],
        dispatch_attempted_at=row[12],
        cancellation_requested_at=row[13],
        cancellation_effective_at=row[14],
        calls_resume_at=row[15],
        started_at=row[16],
        pid=row[17],
        exit_status=row[18],
        exit_signal=row[19],
        failure_reason=row[20],
        kill_confirmed=row[21],
        kill_attempts=row[22],
        dead_sightings=row[23],
        quiet_polls=row[24],
        step_failures=row[25],
        received=row[26],
        log_size=row[27],
    )
    return Claimed(row[0], row[1], row[2], row[3], row[4], row[5], json.loads(row[6]), view)
