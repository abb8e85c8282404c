"""What an installation at rest shows: its rows, the provider's own records, the files of its boxes, and looks at them that find what is
not as promised. Each look returns what breaks its promise; `tests/faults/invariants.py` says which."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from localbox.sizes import SECONDS_PER_DOLLAR
from runs.states import MOVES as RUN_MOVES
from runs.states import TERMINAL as RUN_ENDS
from tests.faults.known_runs import STRUCK_OUT, Known
from tests.faults.left_over import left_of_delegations, left_on_the_machine

Row = tuple[Any, ...]
RUN_ENDED = ", ".join(f"'{state.value}'" for state in RUN_ENDS)
JOB_ENDED = "'completed', 'failed', 'interrupted', 'budget_exhausted', 'cancelled'"
ATTEMPT_ENDED = "'completed', 'failed', 'cancelled'"


@dataclass(frozen=True)
class World:
    """Everything that the invariants look at.

    `runs` are the commands by idempotency key, `accepted` the ids by table that somebody was answered with success,
    `changed` what a witness saw change of rows that had ended.
    """

    rows: Callable[[str], list[Row]]
    url: str
    provider_folder: Path
    marker: str
    runs: Mapping[str, Known]
    accepted: Mapping[str, set[str]]
    logs: Mapping[str, str]
    changed: Sequence[str]

    def provider(self, query: str) -> list[Row]:
        """From the provider's own records."""
        path = self.provider_folder / "private" / "localbox.sqlite3"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as link:
            return link.execute(query).fetchall()

    def lines_of_boxes(self, name: str) -> list[str]:
        """Every line of the files of this name in the boxes' homes."""
        files = (self.provider_folder / "boxes").glob(f"*/home/{name}")
        return [line for file in files for line in file.read_text(errors="replace").splitlines()]


def boxes_nobody_claims(world: World) -> Iterable[object]:
    known = {row[0] for row in world.rows("select box_id from conversation_boxes where box_id is not null")}
    leaks = {
        row[0]
        for row in world.rows(
            "select provider_box_id from box_reconciliation_events where event_type = 'leak'"
        )
    }
    return [row for row in world.provider("select id, name, state from boxes") if row[0] not in known | leaks]


def boxes_up(world: World) -> Iterable[object]:
    return world.provider("select id, name, state from boxes where state not in ('archived', 'error')")


def rows_without_a_box(world: World) -> Iterable[object]:
    made = {row[0] for row in world.provider("select id from boxes")}
    rows = world.rows("select id, box_id from conversation_boxes where box_id is not null")
    return [row for row in rows if row[1] not in made]


def unnamed_boxes(world: World) -> Iterable[object]:
    names = dict(world.provider("select id, name from boxes"))
    rows = world.rows("select box_id from conversation_boxes where marked_at is not null")
    return [
        (box_id, names.get(box_id), world.marker) for (box_id,) in rows if names.get(box_id) != world.marker
    ]


def wrong_costs(world: World) -> Iterable[object]:
    """A figure that is not what the provider's meter says of the one time that the box was up."""
    used: Counter[str] = Counter()
    for box_id, started, ended, multiplier in world.provider("select * from stretches"):
        used[box_id] += (ended - started) * multiplier if ended is not None else float("inf")
    rows = world.rows("select box_id, settled_cost_microusd from conversation_boxes where box_id is not null")
    for box_id, cost in rows:
        meant = round(1e6 * round(round(used[box_id]) / SECONDS_PER_DOLLAR, 6))
        if cost != meant:
            yield box_id, cost, meant


def started_again(world: World) -> Iterable[object]:
    return world.provider("select box_id, count(*) from stretches group by 1 having count(*) > 1")


def ran_twice(world: World) -> Iterable[object]:
    return [pair for pair in Counter(world.lines_of_boxes("counter")).items() if pair[1] > 1]


def ran_without_a_row(world: World) -> Iterable[object]:
    known = {row[0] for row in world.rows("select idempotency_key from box_runs")}
    return [key for key in world.lines_of_boxes("counter") if key not in known]


def untrue_ends(world: World) -> Iterable[object]:
    """An end with an exit status of a command that ran otherwise or not at all; `dispatch_ambiguous` of one that ran."""
    ran = set(world.lines_of_boxes("counter"))
    rows = world.rows("select idempotency_key, state, exit_status, exit_signal, failure_reason from box_runs")
    for row in rows:
        key, state, status, _, reason = row
        known = world.runs.get(key)
        if reason == "dispatch_ambiguous" and key in ran:
            yield row, "it ran"
        if status is not None and key not in ran and state in {"completed", "failed"} and known:
            yield row, "it never ran"
        if known and state in {"completed", "failed"} and status not in {None, known.exit_status}:
            yield row, f"it ends with {known.exit_status}"
        if known and known.is_endless and state in {"completed", "failed"} and status is not None:
            yield row, "it never ends by itself"


# By the histories: the row forgets when its stop was asked for, and the time of an end is counted on from before the look.
STOP_WAS_ASKED_FOR = """(select min(pgh_created_at) from conversation_boxes_history
    where pgh_obj_id = b.id and coalesce(stop_requested_at, stopped_at) is not null)"""
END_WAS_WRITTEN = """(select min(pgh_created_at) from box_runs_history
    where pgh_obj_id = r.id and finished_at is not null)"""


def incomplete_output(world: World) -> Iterable[object]:
    """What is missing at the end, and counted as that, was on a box whose stop had been asked for by then."""
    rows = world.rows(
        f"select r.idempotency_key, r.id::text, r.dropped_bytes, coalesce({STOP_WAS_ASKED_FOR} < {END_WAS_WRITTEN}, false),"
        " jsonb_build_object('finished', r.finished_at, 'deadline', r.deadline_at, 'cancel', r.cancellation_requested_at,"
        " 'failures', r.step_failures, 'quiet', r.quiet_polls, 'stop', b.stop_requested_at, 'stopped', b.stopped_at)::text"
        " from box_runs r join conversation_boxes b on b.id = r.conversation_box_id"
        " where r.state in ('completed', 'failed') and r.exit_status is not null"
    )
    for key, run_id, dropped, is_excused, told in rows:
        known, log = world.runs.get(key), world.logs.get(run_id)
        if known is None or log is None or log == known.output:
            continue
        missing = len(known.output.encode()) - len(log.encode())
        is_counted = dropped > 0 if STRUCK_OUT in known.output else dropped == missing
        if not (is_excused and is_counted and known.output.startswith(log)):
            yield key, run_id, f"dropped {dropped}", told, log[-200:], known.output[-200:]


def forgotten(world: World) -> Iterable[object]:
    for table, ids in world.accepted.items():
        there = {row[0] for row in world.rows(f"select id::text from {table}")}
        yield from ((table, missing) for missing in sorted(ids - there))


def processes_left(world: World) -> Iterable[object]:
    return left_on_the_machine({row[0] for row in world.rows("select id::text from box_runs")})


def agents_left(world: World) -> Iterable[object]:
    return left_of_delegations({row[0] for row in world.rows("select id::text from work_jobs")})


def credentials_that_open(world: World) -> Iterable[object]:
    """Every credential that an attempt was handed, shown again now that its attempt is over."""
    repositories = "select u.slug || '/' || r.name, a.id::text from forge_assignments a"
    repositories += " join forge_repositories r on r.id = a.repository_id join users u on u.id = r.owner_id"
    paths = {attempt: path for path, attempt in world.rows(repositories)}
    for line in world.lines_of_boxes("credential-*"):
        secret = line.partition("//")[2].partition("@")[0].partition(":")[2]
        attempt = secret.removeprefix("oa_assignment_").partition(".")[0]
        if attempt not in paths:
            yield attempt, "there is no such attempt"
            continue
        address = f"{world.url}/{paths[attempt]}.git/info/refs?service=git-receive-pack"
        status = requests.get(address, auth=("x", secret), timeout=30).status_code
        if status not in {401, 403, 404}:
            yield attempt, status


def illegal_run_moves(world: World) -> Iterable[object]:
    for row_id, states in _history(world, "box_runs_history", "state").items():
        pairs = [(a, b) for a, b in itertools.pairwise(states) if a != b]
        if states[0] != "admitted" or any(pair not in RUN_MOVES for pair in pairs):
            yield row_id, states


def illegal_attempt_moves(world: World) -> Iterable[object]:
    for row_id, states in _history(world, "forge_assignments_history", "state").items():
        ends = [state for state in states if state in {"completed", "failed", "cancelled"}]
        if states[0] != "admitted" or len(ends) != 1 or states[-1] != ends[0]:
            yield row_id, states


def illegal_job_moves(world: World) -> Iterable[object]:
    for row_id, states in _history(world, "work_jobs_history", "status").items():
        ends = [state for state in states if state not in {"queued", "running"}]
        if states[0] != "queued" or len(ends) != 1 or states[-1] != ends[0]:
            yield row_id, states


def _history(world: World, table: str, column: str) -> dict[str, list[str]]:
    """The states of every row, oldest first."""
    found: dict[str, list[str]] = {}
    for row_id, state in world.rows(f"select pgh_obj_id::text, {column} from {table} order by pgh_id"):
        found.setdefault(row_id, []).append(state)
    return found


def two_at_once(world: World) -> Iterable[object]:
    """A run that began on a box before the one before it had ended, by the order in which history was written."""
    at_work: dict[str, str] = {}
    for run, box, state in world.rows(
        "select h.pgh_obj_id::text, r.conversation_box_id::text, h.state from box_runs_history h"
        " join box_runs r on r.id = h.pgh_obj_id order by h.pgh_id"
    ):
        if state in RUN_ENDS:
            if at_work.get(box) == run:
                del at_work[box]
        elif at_work.setdefault(box, run) != run:
            yield box, at_work[box], run
