"""What holds of an installation when the trouble is over and everything has come to rest, whatever happened to it.

`INVARIANTS` is the list. Each is a sentence and a look that returns what breaks it: a query of the database whose every row is a violation, or a
function of everything that is known, the provider's own records and the files of its boxes included. The boxes have all been stopped by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.faults import looks
from tests.faults.looks import ATTEMPT_ENDED, JOB_ENDED, RUN_ENDED, World


@dataclass(frozen=True)
class Invariant:
    """`query`: no row may come of it. `look`: nothing may come of it."""

    promise: str
    query: str = ""
    look: Callable[[World], Iterable[object]] | None = None

    def broken_by(self, world: World) -> list[object]:
        found = world.rows(self.query) if self.query else []
        return [*found, *(self.look(world) if self.look else ())]


def broken(world: World) -> dict[str, list[object]]:
    """What of the list does not hold, and by what."""
    found = {invariant.promise: invariant.broken_by(world) for invariant in INVARIANTS}
    return {promise: violations for promise, violations in found.items() if violations}


def _unlike_its_history(table: str, history: str, columns: str) -> str:
    """Rows whose newest history does not say what they say."""
    return f"""
        select r.id from {table} r left join lateral (
            select * from {history} h where h.pgh_obj_id = r.id order by h.pgh_id desc limit 1) last on true
        where ({", ".join(f"r.{name}" for name in columns.split())}) is distinct from
              ({", ".join(f"last.{name}" for name in columns.split())})"""


# --- the list

INVARIANTS: tuple[Invariant, ...] = (
    # Nothing is paid for that no row claims, and no row claims what does not exist.
    Invariant("every box of the provider has a row or is reported as a leak", look=looks.boxes_nobody_claims),
    Invariant("no box of the provider is up", look=looks.boxes_up),
    Invariant("every row's box exists", look=looks.rows_without_a_box),
    Invariant("every box that was named has the installation's name", look=looks.unnamed_boxes),
    Invariant(
        "no box of ours is reported as a leak",
        "select provider_box_id, reason from box_reconciliation_events where event_type = 'leak' and owned",
    ),
    Invariant(
        "no box has two rows",
        "select box_id, count(*) from conversation_boxes where box_id is not null group by 1 having count(*) > 1",
    ),
    Invariant(
        "every box is stopped, and says why and when",
        "select id, state, stop_requested_at, next_provision_at, create_error from conversation_boxes"
        " where stopped_at is null or stop_reason is null or lifetime_seconds is null"
        " or state not in ('archiving', 'archived', 'error')",
    ),
    Invariant(
        "nothing is to be done about a stopped box",
        "select id, stop_requested_at, next_provision_at, next_settlement_at, lease_owner, lease_expires_at from conversation_boxes"
        " where num_nonnulls(stop_requested_at, next_provision_at, next_settlement_at, lease_owner, lease_expires_at) > 0",
    ),
    Invariant(
        "every box is settled",
        "select id, box_id, settlement_attempts, reconciliation_error from conversation_boxes"
        " where usage_settled_at is null",
    ),
    Invariant("what a box cost is what the provider's meter says", look=looks.wrong_costs),
    Invariant("no box was started again", look=looks.started_again),
    Invariant(
        "the history of every box ends as its row",
        _unlike_its_history(
            "conversation_boxes", "conversation_boxes_history", "state stop_reason stopped_at"
        ),
    ),
    Invariant("nothing of a plan waits", "select id from box_fanout_items where state = 'queued'"),
    # A command is dispatched at most once, and its end is known.
    Invariant("no command ran twice", look=looks.ran_twice),
    Invariant("no command ran that no row asked for", look=looks.ran_without_a_row),
    Invariant(
        "every run has one end, and nobody is at work on it",
        "select id, state, failure_reason, lease_owner, lease_expires_at, next_step_at, kill_confirmed from box_runs"
        f" where state not in ({RUN_ENDED}) or finished_at is null or lease_owner is not null or lease_expires_at is not null"
        " or next_step_at is not null",
    ),
    Invariant(
        "a run whose end is not known says why",
        "select id from box_runs where state = 'lost' and failure_reason is null",
    ),
    Invariant("the end of every run is true", look=looks.untrue_ends),
    Invariant("the output of every run that ended by itself is whole", look=looks.incomplete_output),
    Invariant("no two runs were at work on one box", look=looks.two_at_once),
    Invariant("no process of a run is left", look=looks.processes_left),
    Invariant("every run moved as it may, from its admission to one end", look=looks.illegal_run_moves),
    Invariant(
        "the history of every run ends as its row",
        _unlike_its_history(
            "box_runs", "box_runs_history", "state exit_status failure_reason kill_confirmed finished_at"
        ),
    ),
    # A credential dies with the attempt it was made for.
    Invariant(
        "every attempt has one end, and nothing is to be done about it",
        "select id, state, failure_reason, next_step_at, lease_owner from forge_assignments"
        f" where state not in ({ATTEMPT_ENDED}) or finished_at is null or next_step_at is not null or lease_owner is not null",
    ),
    Invariant(
        "every credential was revoked with its attempt",
        "select a.id, a.finished_at, c.revoked_at from forge_assignments a"
        " left join forge_assignment_credentials c on c.assignment_id = a.id where c.revoked_at is distinct from a.finished_at",
    ),
    Invariant("no credential of an attempt that is over opens anything", look=looks.credentials_that_open),
    Invariant(
        "every attempt that was at work has its run, and ended as that did",
        "select a.id, a.state, r.state, r.exit_status from forge_assignments a left join box_runs r on r.id = a.run_id"
        " where (a.started_at is not null and r.id is null)"
        " or (a.state = 'completed' and r.state is distinct from 'completed')",
    ),
    Invariant(
        "every run of an attempt is known to it",
        "select r.id, r.idempotency_key, r.state, a.state from box_runs r"
        " join forge_assignments a on r.idempotency_key = 'assignment-' || a.id"
        " where a.run_id is distinct from r.id and a.state <> 'cancelled' and a.failure_reason is null",
    ),
    Invariant(
        "what a completed attempt left was pushed by it, and has a receipt",
        "select a.id, a.terminal_commit from forge_assignments a where a.state = 'completed' and not exists ("
        " select 1 from forge_pushes p, jsonb_each(p.refs) as ref where p.repository_id = a.repository_id"
        " and p.principal = 'assignment:' || a.id and ref.value ->> 'new' = a.terminal_commit)",
    ),
    Invariant("every attempt moved from its admission to one end", look=looks.illegal_attempt_moves),
    Invariant(
        "the history of every attempt ends as its row",
        _unlike_its_history(
            "forge_assignments", "forge_assignments_history", "state failure_reason terminal_commit"
        ),
    ),
    # A job that was accepted ends with a report.
    Invariant(
        "every job ends with a report, and nobody is at work on it",
        "select id, status, error_code, lease_owner, next_step_at from work_jobs"
        f" where status not in ({JOB_ENDED}) or btrim(coalesce(report, '')) = '' or completed_at is null"
        " or lease_owner is not null or lease_expires_at is not null or next_step_at is not null",
    ),
    Invariant(
        "the report of every job is in its conversation once",
        "select j.id, count(m.id) from work_jobs j left join messages m on m.work_job_id = j.id group by j.id"
        " having count(m.id) <> 1 or bool_or(m.content is distinct from j.report) or bool_or(m.id is distinct from j.report_message_id)",
    ),
    Invariant(
        "every step of a job has ended",
        "select id, work_job_id, status from work_job_steps where completed_at is null",
    ),
    Invariant(
        "no tool call was written down twice",
        "select work_job_id, provider_call_id from work_job_steps group by 1, 2 having count(*) > 1",
    ),
    Invariant("no process of a delegation is left", look=looks.agents_left),
    Invariant("every job moved from its acceptance to one end", look=looks.illegal_job_moves),
    Invariant(
        "the history of every job ends as its row",
        _unlike_its_history("work_jobs", "work_jobs_history", "status error_code completed_at"),
    ),
    # PostgreSQL is the only truth.
    Invariant("everything that was accepted is there", look=looks.forgotten),
    Invariant("what has ended never changed", look=lambda world: world.changed),
    Invariant(
        "the receipts of pushes are in one unbroken row",
        "select repository_id, count(*), max(sequence) from forge_pushes group by 1 having count(*) <> max(sequence) + 1",
    ),
    Invariant("no push is unsettled", "select repository_id, started_at from forge_push_intents"),
)


def told(violations: Mapping[str, Sequence[object]]) -> str:
    """The violations for people, the first few of each promise."""
    parts = []
    for promise, found in violations.items():
        shown = "\n".join(f"    {json.dumps(item, default=str)}" for item in found[:5])
        parts.append(f"  BROKEN: {promise} ({len(found)})\n{shown}")
    return "\n".join(parts)
