"""Two machines share one ledger: nothing is done twice, and either goes on without the other."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from runs.states import TERMINAL
from tests.contract.installation import database_of_this_process
from tests.faults.installation import REPOSITORY, Api, Owner
from tests.several.machines import Machine, Pair, two_machines
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.timeout(400), pytest.mark.django_db]
CALLS = 2  # of a tool, by each job
MARKS = "$HOME/marks"
STUCK = f"""
    select id from box_runs where state not in ({", ".join(f"'{state}'" for state in TERMINAL)}) or lease_owner is not null
    union all select id from work_jobs where status in ('queued', 'running') or lease_owner is not null
    union all select id from conversation_boxes where lease_expires_at is not null"""


@contextmanager
def model() -> Iterator[int]:
    """The port of a model that makes two calls and a report for each job."""
    command = [sys.executable, "-m", "benchmarks.slow_model", str(CALLS), "0.2"]
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield urlsplit(process.stdout.readline().strip()).port or 0
        finally:
            process.kill()


@pytest.fixture(scope="module")
def pair(django_db_setup: None, django_db_blocker: Any) -> Iterator[Pair]:
    with django_db_blocker.unblock():
        template = database_of_this_process()
    with model() as port, two_machines(template, port) as made:
        yield made


def on_both(pair: Pair, owner: Owner, ask: Callable[[Api], Any]) -> list[Any]:
    """The answers of both machines to what they are asked at the same moment."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(ask, [Api(machine.url, owner.token) for machine in pair.machines]))


def start(machine: Machine, owner: Owner, key: str, *, waits: bool = False) -> str:
    """A run that leaves its key in its box, and prints it when it is done: at once, or when it is let go.

    Meanwhile it prints dots, so that no look at it lasts as long as a hurried lease.
    """
    until = f"until [ -e $HOME/{key} ]; do printf .; sleep 0.2; done; " if waits else ""
    body = {
        "box": owner.boxes[0][0],
        "command": f"echo {key} >> {MARKS}; {until}echo {key}",
        "idempotency_key": key,
    }
    return str(Api(machine.url, owner.token).insist("POST", "runs", json=body)["id"])


def let_go(machine: Machine, owner: Owner, key: str) -> None:
    Api(machine.url, owner.token).insist(
        "POST", f"boxes/{owner.boxes[0][0]}/commands", json={"command": f"touch $HOME/{key}"}
    )


def all_wait(pair: Pair, machine: Machine) -> dict[str, dict[str, str]]:
    """A run of each owner, started at this machine, that runs until it is let go: by token, its id by its key."""

    def started(owner: Owner) -> tuple[str, dict[str, str]]:
        key = str(uuid.uuid4())
        return owner.token, {key: start(machine, owner, key, waits=True)}

    runs = dict(with_all(pair.owners, started))
    on_its_way = "select 1 from box_runs where state in ('admitted', 'dispatched')"
    eventually(lambda: not pair.rows(on_its_way))  # a start that dies on its way is honestly lost
    return runs


def assert_all_end(pair: Pair, machine: Machine, runs: dict[str, dict[str, str]]) -> None:
    """Let go, each ends as its command did, which ran once, as this machine sees it."""

    def end(owner: Owner) -> None:
        for key in runs[owner.token]:
            let_go(machine, owner, key)
        assert_each_ran_once(machine, owner, runs[owner.token])

    with_all(pair.owners, end)


def ended(machine: Machine, owner: Owner, run_id: str) -> dict[str, Any]:
    """The run as it ended, with its output, followed at this machine."""
    api = Api(machine.url, owner.token)
    run: dict[str, Any] = {"is_terminal": False}
    while not run["is_terminal"]:
        run = api.insist("GET", f"runs/{run_id}", params={"wait": 5})
    return run | {"output": api.insist("GET", f"runs/{run_id}/log")["output"]}


def marks(machine: Machine, owner: Owner) -> list[str]:
    """The keys that commands left in the box, one each time that a command ran."""
    path = f"boxes/{owner.boxes[0][0]}/commands"
    told = Api(machine.url, owner.token).insist("POST", path, json={"command": f"cat {MARKS}"})
    return str(told["stdout"]).split()


def assert_each_ran_once(machine: Machine, owner: Owner, runs: dict[str, str]) -> None:
    """`runs`: ids by key. Each has ended well, with its whole output, and its command has run one time."""
    for key, run_id in runs.items():
        run = ended(machine, owner, run_id)
        printed = run["output"].lstrip(".")
        assert (run["state"], run["exit_status"], printed) == ("completed", 0, f"{key}\n")
    times = Counter(marks(machine, owner))
    assert {key: times[key] for key in runs} == dict.fromkeys(runs, 1)


def with_all(owners: list[Owner], work: Callable[[Owner], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(owners)) as pool:
        return list(pool.map(work, owners))


def test_a_run_that_both_are_asked_for_is_dispatched_once(pair: Pair) -> None:
    def live(owner: Owner) -> None:
        runs = {}
        for number in range(3):
            key = str(uuid.uuid4())
            body = {"box": owner.boxes[0][0], "command": f"echo {key} >> {MARKS}; echo {key}"}
            told = on_both(pair, owner, lambda api, key=key, body=body: api.insist("POST", "runs", json=body | {"idempotency_key": key}))  # fmt: skip  # type: ignore[misc]
            assert told[0]["id"] == told[1]["id"]
            runs[key] = told[0]["id"]
            ended(pair.machines[number % 2], owner, runs[key])
        assert_each_ran_once(pair.machines[0], owner, runs)

    with_all(pair.owners, live)

    dispatched = [
        sum(method == "POST" and path.endswith("/commands") for method, path in machine.to_provider.requests)
        for machine in pair.machines
        if machine.to_provider is not None
    ]
    assert all(dispatched), dispatched


def test_a_box_that_both_are_asked_for_is_made_once_and_stopped_once(pair: Pair) -> None:
    owner, key = pair.owners[0], {"Idempotency-Key": str(uuid.uuid4())}
    made = on_both(pair, owner, lambda api: api.insist("POST", "boxes", json={"wait": 20}, headers=key))
    ledger_id = made[0]["id"]
    box = eventually(
        lambda: Api(pair.machines[0].url, owner.token).insist("GET", f"boxes/{ledger_id}")["box_id"]
    )

    stopped = on_both(pair, owner, lambda api: api.insist("POST", f"boxes/{ledger_id}/stop"))

    assert {answer["id"] for answer in [*made, *stopped]} == {ledger_id}
    asked = [path for method, path in pair.requests() if method == "POST" and path.endswith(f"/{box}/stop")]
    assert len(asked) == 1


def test_a_job_that_both_may_drive_takes_each_step_once(pair: Pair) -> None:
    def accepted(number: int) -> str:
        owner, machine = pair.owners[number % len(pair.owners)], pair.machines[number % 2]
        return str(Api(machine.url, owner.token).insist("POST", "jobs", json={"goal": "Look"})["id"])

    jobs = [accepted(number) for number in range(12)]
    eventually(lambda: not pair.rows("select 1 from work_jobs where status in ('queued', 'running')"))

    steps = pair.rows(
        "select work_job_id::text, count(*), count(*) filter (where status = 'succeeded') from work_job_steps group by 1"
    )
    assert dict.fromkeys(jobs, (CALLS, CALLS)) == {job: (count, good) for job, count, good in steps}
    assert pair.rows("select status, count(*) from work_jobs group by 1") == [("completed", len(jobs))]
    reports = pair.rows(
        "select count(*), count(distinct work_job_id) from messages where work_job_id is not null"
    )
    assert reports == [(len(jobs), len(jobs))]
    assert model_requests(pair) == len(jobs) * (CALLS + 1)


def model_requests(pair: Pair) -> int:
    return sum(len(machine.to_model.requests) for machine in pair.machines if machine.to_model is not None)


def test_one_pass_at_a_time_is_made_by_either(pair: Pair) -> None:
    before = pair.rows("select count(*) from seen where what = 'pass'")[0][0]
    eventually(lambda: pair.rows("select count(*) from seen where what = 'pass'")[0][0] > before + 2)

    taken = [
        int(row[0].split()[0]) for row in pair.rows("select detail from seen where what = 'pass' order by at")
    ]
    listed = [path for method, path in pair.requests() if method == "GET" and "/boxes?" in path]
    assert taken == list(range(1, len(taken) + 1))
    assert len(listed) in {len(taken) - 1, len(taken), len(taken) + 1}  # one may have been between the two


@contextmanager
def in_the_midst(pair: Pair, machine: Machine) -> Iterator[None]:
    """While it holds runs and waits for the provider's answers, which come afterwards.

    Its worker holds them, or a scheduled task, which has no number; those of the other machine are done in no time.
    """
    assert machine.to_provider is not None
    machine.to_provider.cut()
    held = """select 1 from box_runs where (lease_owner = %s or lease_owner is null)
        and lease_expires_at > clock_timestamp() + interval '2 s'"""
    eventually(lambda: pair.rows(held, [machine.worker_number()]))
    yield
    machine.to_provider.mend()


ENDS = "select id, state, exit_status, failure_reason, generation, finished_at, log_size from box_runs order by id"


def test_one_that_is_cut_off_from_the_database_is_replaced_and_does_no_harm_when_it_is_back(
    pair: Pair,
) -> None:
    stays, goes = pair.machines
    assert goes.to_database is not None
    runs = all_wait(pair, stays)
    with in_the_midst(pair, goes):
        goes.to_database.cut()

    assert_all_end(pair, stays, runs)
    known = pair.rows(ENDS)
    goes.to_database.mend()
    eventually(lambda: is_back(pair, goes))

    assert pair.rows(ENDS) == known
    assert pair.rows(STUCK) == []
    owner, key = pair.owners[0], str(uuid.uuid4())
    goes.parts["worker"].ensure()
    goes.await_web()
    assert_each_ran_once(goes, owner, {key: start(goes, owner, key)})


def is_back(pair: Pair, machine: Machine) -> bool:
    """Its worker has noticed: it goes on, or has ended for its supervisor to start it again."""
    if not machine.parts["worker"].is_running:
        return True
    name = f"worker:{machine.worker_number()}"
    return bool(pair.rows("select 1 from process_heartbeats where name = %s and stamped_at > clock_timestamp() - interval '2 s'", [name]))  # fmt: skip


def test_each_schedule_fires_once_when_it_is_due_and_what_it_fires_is_done_once(pair: Pair) -> None:
    is_due = "select 1 from django_q_schedule where next_run < now()"
    eventually(lambda: not pair.rows(is_due), seconds=120)  # all were due when they were made
    pair.rows("update django_q_schedule set next_run = now() - interval '1 s'")

    eventually(lambda: not pair.rows(is_due), seconds=120)
    eventually(lambda: not pair.rows("select 1 from django_q_ormq"), seconds=120)

    firings = pair.rows("select name, detail from seen where what = 'firing'")
    assert len(firings) == len(set(firings)) >= 11
    assert pair.rows("select count(*) from seen where what = 'task'") == [(len(firings),)]
    beats = [name for name, _ in firings if name == "heartbeat"]
    told = pair.rows("select count(*) from seen where what = 'sign of life' and name = 'scheduler'")
    assert told == [(len(beats),)]


def test_one_that_dies_is_replaced_at_once(pair: Pair) -> None:
    stays, goes = pair.machines
    runs = all_wait(pair, goes)

    with in_the_midst(pair, goes):
        goes.kill9()

    assert_all_end(pair, stays, runs)
    assert pair.rows(STUCK) == []
