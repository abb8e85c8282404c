"""Every promise of the list is broken here at least once, and is the one that is found: a look that can find nothing would promise nothing.

The rows are written to temporary tables with the names and columns of the ledger's. They hide the true ones, and take what guards refuse there.
"""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from django.db import connection

from connector.keeper import KEEPS
from connector.processes import MARK
from localbox.sizes import SECONDS_PER_DOLLAR
from tests.faults.invariants import INVARIANTS
from tests.faults.known_runs import Known
from tests.faults.looks import World
from tests.faults.test_invariants import MARKER, SECONDS_UP, Provider, found, rows
from tests.waiting import eventually

pytestmark = pytest.mark.django_db

TABLES = (
    *(
        "users",
        "conversation_boxes",
        "conversation_boxes_history",
        "box_reconciliation_events",
        "box_fanout_items",
    ),
    *("box_runs", "box_runs_history", "forge_repositories", "forge_assignments", "forge_assignments_history"),
    *("forge_assignment_credentials", "forge_pushes", "forge_push_intents"),
    *("work_jobs", "work_jobs_history", "work_job_steps", "messages"),
)
BY_PROMISE = {invariant.promise: invariant for invariant in INVARIANTS}
ONE, TWO = (f"'00000000-0000-0000-0000-00000000000{number}'" for number in (1, 2))
KEY = f"assignment-{ONE[1:-1]}"
COST = round(1e6 * round(SECONDS_UP / SECONDS_PER_DOLLAR, 6))

SOUND = f"""
    insert into users (id, slug) values ({ONE}, 'owner');
    insert into conversation_boxes (id, box_id, state, stop_reason, stopped_at, lifetime_seconds, usage_settled_at, marked_at, settled_cost_microusd)
        values ({ONE}, 'bx_1', 'archived', 'user_requested', now(), {SECONDS_UP}, now(), now(), {COST});
    insert into conversation_boxes_history (pgh_id, pgh_obj_id, state, stop_reason, stopped_at)
        values (1, {ONE}, 'ready', null, null), (2, {ONE}, 'archived', 'user_requested', now());
    insert into box_runs (id, conversation_box_id, idempotency_key, state, exit_status, finished_at)
        values ({ONE}, {ONE}, '{KEY}', 'completed', 0, now());
    insert into box_runs_history (pgh_id, pgh_obj_id, state, exit_status, finished_at)
        values (1, {ONE}, 'admitted', null, null), (2, {ONE}, 'running', null, null), (3, {ONE}, 'completed', 0, now());
    insert into forge_repositories (id, owner_id, name) values ({ONE}, {ONE}, 'work');
    insert into forge_assignments (id, repository_id, run_id, state, terminal_commit, started_at, finished_at)
        values ({ONE}, {ONE}, {ONE}, 'completed', 'abc', now(), now());
    insert into forge_assignments_history (pgh_id, pgh_obj_id, state, terminal_commit)
        values (1, {ONE}, 'admitted', null), (2, {ONE}, 'completed', 'abc');
    insert into forge_assignment_credentials (assignment_id, revoked_at) values ({ONE}, now());
    insert into forge_pushes (repository_id, sequence, principal, refs)
        values ({ONE}, 0, 'assignment:' || {ONE}, '{{"refs/heads/work": {{"old": null, "new": "abc"}}}}');
    insert into work_jobs (id, status, report, completed_at, report_message_id) values ({ONE}, 'completed', 'done', now(), {ONE});
    insert into work_jobs_history (pgh_id, pgh_obj_id, status, completed_at)
        values (1, {ONE}, 'queued', null), (2, {ONE}, 'completed', now());
    insert into work_job_steps (id, work_job_id, provider_call_id, status, completed_at) values ({ONE}, {ONE}, 'call', 'succeeded', now());
    insert into messages (id, work_job_id, content) values ({ONE}, {ONE}, 'done');"""

BOX_RESTS = "nothing is to be done about a stopped box"
BOX_STOPPED = "every box is stopped, and says why and when"
BOX_HISTORY = "the history of every box ends as its row"
RUN_ENDED = "every run has one end, and nobody is at work on it"
RUN_HISTORY = "the history of every run ends as its row"
RUN_MOVED = "every run moved as it may, from its admission to one end"
RUN_TRUE = "the end of every run is true"
ATTEMPT_ENDED = "every attempt has one end, and nothing is to be done about it"
ATTEMPT_MOVED = "every attempt moved from its admission to one end"
ATTEMPT_HISTORY = "the history of every attempt ends as its row"
ATTEMPT_RAN = "every attempt that was at work has its run, and ended as that did"
REVOKED = "every credential was revoked with its attempt"
PUSHED = "what a completed attempt left was pushed by it, and has a receipt"
JOB_ENDED = "every job ends with a report, and nobody is at work on it"
JOB_MOVED = "every job moved from its acceptance to one end"
JOB_HISTORY = "the history of every job ends as its row"
REPORTED = "the report of every job is in its conversation once"
LEDGER: tuple[tuple[str, str], ...] = (
    ("no box of ours is reported as a leak", "insert into box_reconciliation_events (provider_box_id, event_type, owned) values ('bx_1', 'leak', true)"),
    ("no box has two rows", "insert into conversation_boxes select * from conversation_boxes"),
    (BOX_STOPPED, "update conversation_boxes set stopped_at = null; update conversation_boxes_history set stopped_at = null"),
    (BOX_STOPPED, "update conversation_boxes set stop_reason = null; update conversation_boxes_history set stop_reason = null"),
    (BOX_STOPPED, "update conversation_boxes set lifetime_seconds = null"),
    (BOX_STOPPED, "update conversation_boxes set state = 'ready'; update conversation_boxes_history set state = 'ready'"),
    (BOX_RESTS, "update conversation_boxes set stop_requested_at = now()"),
    (BOX_RESTS, "update conversation_boxes set next_provision_at = now()"),
    (BOX_RESTS, "update conversation_boxes set next_settlement_at = now()"),
    (BOX_RESTS, "update conversation_boxes set lease_owner = 7"),
    (BOX_RESTS, "update conversation_boxes set lease_expires_at = now()"),
    ("every box is settled", "update conversation_boxes set usage_settled_at = null"),
    ("what a box cost is what the provider's meter says", "update conversation_boxes set settled_cost_microusd = 0"),
    (BOX_HISTORY, "delete from conversation_boxes_history"),
    (BOX_HISTORY, "update conversation_boxes_history set stop_reason = 'idle' where pgh_id = 2"),
    ("nothing of a plan waits", "insert into box_fanout_items (state) values ('queued')"),
    (RUN_ENDED, "update box_runs set state = 'running'; update box_runs_history set state = 'running' where pgh_id = 3"),
    (RUN_ENDED, "update box_runs set finished_at = null; update box_runs_history set finished_at = null"),
    (RUN_ENDED, "update box_runs set lease_owner = 7"),
    (RUN_ENDED, "update box_runs set lease_expires_at = now()"),
    (RUN_ENDED, "update box_runs set next_step_at = now()"),
    ("a run whose end is not known says why", "update box_runs set state = 'lost'; update box_runs_history set state = 'lost' where pgh_id = 3"),
    (RUN_TRUE, "update box_runs set failure_reason = 'dispatch_ambiguous'; update box_runs_history set failure_reason = 'dispatch_ambiguous'"),
    (RUN_TRUE, "update box_runs set exit_status = 1; update box_runs_history set exit_status = 1"),
    ("no two runs were at work on one box", f"insert into box_runs_history (pgh_id, pgh_obj_id, state) values (0, {TWO}, 'admitted');"
     f" insert into box_runs (id, conversation_box_id, state, finished_at) values ({TWO}, {ONE}, 'cancelled', now())"),
    (RUN_MOVED, "delete from box_runs_history where pgh_id = 1"),
    (RUN_MOVED, f"insert into box_runs_history (pgh_id, pgh_obj_id, state, exit_status, finished_at) select 4, {ONE}, 'failed', 0, now();"
     f" insert into box_runs_history (pgh_id, pgh_obj_id, state, exit_status, finished_at) select 5, {ONE}, 'completed', 0, now()"),
    (RUN_HISTORY, "update box_runs_history set kill_confirmed = true"),
    (ATTEMPT_ENDED, "update forge_assignments set next_step_at = now()"),
    (ATTEMPT_ENDED, "update forge_assignments set lease_owner = 7"),
    (ATTEMPT_ENDED, "update forge_assignments set finished_at = null"),
    (ATTEMPT_ENDED, "update forge_assignments set state = 'running'"),
    (REVOKED, "update forge_assignment_credentials set revoked_at = null"),
    (REVOKED, "update forge_assignment_credentials set revoked_at = now() + interval '1 second'"),
    (REVOKED, "delete from forge_assignment_credentials"),
    (ATTEMPT_RAN, "update forge_assignments set run_id = null"),
    (ATTEMPT_RAN, "update box_runs set state = 'failed'"),
    ("every run of an attempt is known to it", f"update forge_assignments set run_id = {TWO}"),
    (PUSHED, "update forge_pushes set principal = 'user:1'"),
    (PUSHED, "update forge_assignments set terminal_commit = 'def'; update forge_assignments_history set terminal_commit = 'def'"),
    (PUSHED, f"update forge_pushes set repository_id = {TWO}"),
    (ATTEMPT_MOVED, "delete from forge_assignments_history where pgh_id = 1"),
    (ATTEMPT_MOVED, f"insert into forge_assignments_history (pgh_id, pgh_obj_id, state, terminal_commit) values (3, {ONE}, 'completed', 'abc')"),
    (ATTEMPT_HISTORY, "update forge_assignments_history set failure_reason = 'x'"),
    (JOB_ENDED, "update work_jobs set report = ' '; update messages set content = ' '"),
    (JOB_ENDED, "update work_jobs set status = 'running'; update work_jobs_history set status = 'running' where pgh_id = 2"),
    (JOB_ENDED, "update work_jobs set completed_at = null; update work_jobs_history set completed_at = null"),
    (JOB_ENDED, "update work_jobs set lease_owner = 7"),
    (JOB_ENDED, "update work_jobs set lease_expires_at = now()"),
    (JOB_ENDED, "update work_jobs set next_step_at = now()"),
    (REPORTED, "delete from messages"),
    (REPORTED, f"insert into messages (id, work_job_id, content) values ({TWO}, {ONE}, 'done')"),
    (REPORTED, "update messages set content = 'another'"),
    (REPORTED, f"update work_jobs set report_message_id = {TWO}"),
    ("every step of a job has ended", "update work_job_steps set completed_at = null"),
    ("no tool call was written down twice", f"insert into work_job_steps (id, work_job_id, provider_call_id, completed_at) values ({TWO}, {ONE}, 'call', now())"),
    (JOB_MOVED, "delete from work_jobs_history where pgh_id = 1"),
    (JOB_MOVED, f"insert into work_jobs_history (pgh_id, pgh_obj_id, status, completed_at) values (3, {ONE}, 'completed', now())"),
    (JOB_HISTORY, "update work_jobs_history set error_code = 'x'"),
    ("the receipts of pushes are in one unbroken row", "update forge_pushes set sequence = 1"),
    ("no push is unsettled", f"insert into forge_push_intents (repository_id) values ({ONE})"),
    ("everything that was accepted is there", "delete from work_jobs"),
    ("every row's box exists", "update conversation_boxes set box_id = 'bx_2'"),
)  # fmt: skip
PROVIDER: tuple[tuple[str, str], ...] = (
    ("every box of the provider has a row or is reported as a leak", "update boxes set id = 'bx_9'"),
    ("no box of the provider is up", "update boxes set state = 'ready'"),
    ("every box that was named has the installation's name", "update boxes set name = 'another'"),
    ("no box was started again", "insert into stretches values ('bx_1', 200, 200, 1)"),
)  # fmt: skip
HOMES: tuple[tuple[str, str], ...] = (
    ("no command ran twice", f"{KEY}\n{KEY}\n"),
    ("no command ran that no row asked for", f"{KEY}\nanother\n"),
    (RUN_TRUE, ""),
)
OUTPUT = "the output of every run that ended by itself is whole"
CHANGED = "what has ended never changed"
LEFT = "no process of a run is left"
AGENT_LEFT = "no process of a delegation is left"
OPENS = "no credential of an attempt that is over opens anything"


@dataclass(frozen=True)
class Sound:
    """A world in which every promise holds, and the provider in it."""

    world: World
    provider: Provider


@pytest.fixture
def sound(tmp_path: Path) -> Sound:
    provider = Provider(tmp_path)
    provider.add("bx_1")
    provider.leave("bx_1", "counter", f"{KEY}\n")
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(
                f"create temporary table {table} on commit drop as table public.{table} with no data"
            )
        cursor.execute(SOUND)
    known = Known(KEY, "echo word", "word\n")
    world = World(
        rows=rows, url="http://127.0.0.1:9", provider_folder=tmp_path, marker=MARKER, runs={KEY: known},
        accepted={"work_jobs": {ONE[1:-1]}}, logs={ONE[1:-1]: "word\n"}, changed=[],
    )  # fmt: skip
    return Sound(world, provider)


def test_nothing_is_found_where_everything_is_as_promised(sound: Sound) -> None:
    assert found(sound.world) == []


@pytest.mark.parametrize(("promise", "statements"), LEDGER, ids=[promise for promise, _ in LEDGER])
def test_rows_that_break_it_are_found(sound: Sound, promise: str, statements: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statements)

    assert BY_PROMISE[promise].broken_by(sound.world)


@pytest.mark.parametrize(("promise", "statement"), PROVIDER, ids=[promise for promise, _ in PROVIDER])
def test_records_of_the_provider_that_break_it_are_found(sound: Sound, promise: str, statement: str) -> None:
    sound.provider._link.execute(statement)
    sound.provider._link.commit()

    assert BY_PROMISE[promise].broken_by(sound.world)


@pytest.mark.parametrize(("promise", "counter"), HOMES, ids=[promise for promise, _ in HOMES])
def test_what_commands_left_is_found(sound: Sound, promise: str, counter: str) -> None:
    sound.provider.leave("bx_1", "counter", counter)

    assert BY_PROMISE[promise].broken_by(sound.world)


def test_an_end_of_a_command_that_never_ends_is_found(sound: Sound) -> None:
    endless = replace(sound.world.runs[KEY], is_endless=True)

    assert found(replace(sound.world, runs={KEY: endless})) == [RUN_TRUE]


def test_output_that_is_not_whole_is_found(sound: Sound) -> None:
    assert found(replace(sound.world, logs={ONE[1:-1]: "wor"})) == [OUTPUT]


@pytest.mark.parametrize(("minutes", "broken"), [(-1, []), (1, [OUTPUT])])
def test_the_end_of_an_output_may_be_missing_only_if_its_boxs_stop_was_asked_for_before(
    sound: Sound, minutes: int, broken: list[str]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "update box_runs set dropped_bytes = 2; update box_runs_history set pgh_created_at = now()"
        )
        cursor.execute(
            "update conversation_boxes_history set pgh_created_at = now() + make_interval(mins => %s),"
            " stop_requested_at = now() where stopped_at is null",
            [minutes],
        )

    assert found(replace(sound.world, logs={ONE[1:-1]: "wor"})) == broken


def test_what_a_witness_saw_change_is_found(sound: Sound) -> None:
    assert found(replace(sound.world, changed=["a run"])) == [CHANGED]


@pytest.mark.parametrize(
    ("name", "value", "promise"),
    [
        ("OPENAGENTS_RUN_DIRECTORY", f"/runs/{ONE[1:-1]}", LEFT),
        (MARK, ONE[1:-1], AGENT_LEFT),
        (KEEPS, ONE[1:-1], AGENT_LEFT),
    ],
    ids=["of a run", "of an agent", "a keeper"],
)
def test_a_process_that_is_left_is_found(sound: Sound, name: str, value: str, promise: str) -> None:
    left = subprocess.Popen(["sleep", "600"], env=os.environ | {name: value})
    try:
        eventually(lambda: found(sound.world) == [promise])  # it may be between its fork and its program
    finally:
        left.kill()
        left.wait(30)


@pytest.mark.parametrize(("status", "opened"), [(200, [OPENS]), (500, [OPENS]), (401, []), (404, [])])
def test_a_credential_that_still_opens_something_is_found(
    sound: Sound, status: int, opened: list[str]
) -> None:
    sound.provider.leave(
        "bx_1", "credential-1", f"http://x:oa_assignment_{ONE[1:-1]}.secret@host/owner/work.git\n"
    )

    with forge(status) as url:
        assert found(replace(sound.world, url=url)) == opened


def test_the_credential_of_an_attempt_that_is_gone_is_found(sound: Sound) -> None:
    sound.provider.leave(
        "bx_1", "credential-2", f"http://x:oa_assignment_{TWO[1:-1]}.secret@host/owner/work.git\n"
    )

    assert found(sound.world) == [OPENS]


def test_every_promise_is_broken_here() -> None:
    broken = {promise for promise, _ in (*LEDGER, *PROVIDER, *HOMES)} | {
        OUTPUT,
        CHANGED,
        LEFT,
        AGENT_LEFT,
        OPENS,
    }

    assert broken == set(BY_PROMISE)


@contextmanager
def forge(status: int) -> Iterator[str]:
    """The address of a server that answers everything with this status."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
