"""Runs of known output while everything that drives them is killed at random moments.

`FAULT_RUNS=200` runs the long form, `FAULT_SEED=N` repeats what a failure printed.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from base.embedded_postgres import Cluster
from base.state_root import reachable_folder
from runs.states import TERMINAL
from tests.faults.installation import Api, Installation, Owner, answers, eventually
from tests.faults.known_runs import COUNTER, Known, known_run
from tests.localbox.server import LocalboxServer

RUNS = int(os.environ.get("FAULT_RUNS", "40"))
SEED = int(os.environ.get("FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
KILLS = max(8, RUNS // 4)
WORKERS = ("worker-1", "worker-2")
RUNS_PER_BOX = 4 if RUNS <= 40 else 10  # an owner may start ten a minute
pytestmark = [pytest.mark.system, pytest.mark.timeout(300 + 6 * RUNS)]


class House:
    """An installation with a database of its own, and whoever kills its parts."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.cluster = Cluster(reachable_folder(folder / "postgres"))
        self.cluster.start()
        stack.callback(self.cluster.close)
        self.provider = stack.enter_context(LocalboxServer())
        database = self.cluster.ensure_database()
        self.installation = stack.enter_context(
            Installation(database, self.provider, {"RUN_POLL_INTERVAL_MS": "500"})
        )
        self.installation.migrate()
        self.kills: list[str] = []

    def start(self) -> None:
        self.installation.add_web(WEB_THREADS="64")
        for name in WORKERS:
            self.installation.add_worker(name)
        self.installation.await_web()

    def kill_something(self, rng: random.Random) -> None:
        """Kill one part with -9 and start it again, as its supervisor would, after a moment."""
        victims = self.working()
        if not victims.keys() - {"database", "provider"}:
            return
        victim = rng.choices(list(victims), weights=list(victims.values()))[0]
        self.kills.append(victim)
        print(f"{time.strftime('%X')} kill {victim}", flush=True)
        pause = rng.uniform(0.0, 0.5)
        match victim:
            case "database":
                pid = self.cluster.status().pid
                assert pid is not None
                psutil.Process(pid).kill()
                eventually(lambda: self.cluster.poll() is not None)
                time.sleep(pause)
                self.cluster.start()
            case "provider":
                self.provider.kill9()
                time.sleep(pause)
                self.provider.start()
            case "both workers":
                for name in WORKERS:
                    self.installation.parts[name].kill9()
            case _:
                self.installation.parts[victim].kill9()
        time.sleep(pause)
        self.revive()

    def working(self) -> dict[str, int]:
        """What is up and at work, with how likely it is to be killed: a part that only starts is left alone, so that
        a slow machine gets somewhere too."""
        weights = {"database": 2}
        if self.kills.count("provider") < KILLS // 8:
            weights["provider"] = 1
        if answers(f"{self.installation.url}/healthz"):
            weights["web"] = 2
        at_work = [name for name in WORKERS if self._works(name)]
        weights |= dict.fromkeys(at_work, 3)
        return weights | ({"both workers": 2} if len(at_work) == 2 else {})

    def _works(self, worker: str) -> bool:
        part = self.installation.parts[worker]
        return part.is_running and "worker_started" in part.said()

    def revive(self) -> None:
        for part in self.installation.parts.values():
            part.ensure()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(**self.cluster.connection().parameters()) as link:
            return link.execute(query).fetchall()


@pytest.fixture
def house() -> Iterator[House]:
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    folder.chmod(0o711)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield House(stack, folder)


def followed(api: Api, box: str, known: Known) -> dict[str, Any]:
    """Start the run and stay with it to its end, as a patient client does; the run as it ended."""
    body = {"box": box, "command": known.command, "idempotency_key": known.key}
    run = api.insist("POST", "runs", json=body)
    asked = False
    while not run["is_terminal"]:
        run = api.insist("GET", f"runs/{run['id']}", params={"wait": 5})
        if known.is_endless and run["state"] == "running" and not asked:
            api.insist("POST", f"runs/{run['id']}/cancel")
            asked = True
    return run


def whole_log(api: Api, run_id: str) -> str:
    text, offset = "", 0
    while True:
        piece = api.insist("GET", f"runs/{run_id}/log", params={"offset": offset})
        text += piece["output"]
        if piece["next_offset"] <= offset:
            return text
        offset = piece["next_offset"]


Ended = list[tuple[Known, dict[str, Any], str]]


def lived(url: str, owner: Owner, known_runs: list[Known]) -> Ended:
    """One owner's runs on one box, one after the other, each with its whole log."""
    api, ended = Api(url, owner.token), []
    for known in known_runs:
        run = followed(api, owner.boxes[0][0], known)
        ended.append((known, run, whole_log(api, run["id"])))
    return ended


def started(house: House, rng: random.Random, pool: ThreadPoolExecutor) -> list[tuple[Owner, Future[Ended]]]:
    owners = house.installation.owners(max(1, RUNS // RUNS_PER_BOX))
    return [
        (owner, pool.submit(lived, house.installation.url, owner, [known_run(rng, f"run-{index}-{n}") for n in range(RUNS_PER_BOX)]))
        for index, owner in enumerate(owners)
    ]  # fmt: skip


def counted(house: House, owner: Owner) -> list[str]:
    """What the commands really left on their box: one line each time that one ran."""
    api = Api(house.installation.url, owner.token)
    path = f"boxes/{owner.boxes[0][0]}/commands"
    answer = api.insist(
        "POST", path, json={"command": f"cat {COUNTER} 2>/dev/null; true", "timeout_seconds": 20}
    )
    return str(answer["stdout"]).split()


def is_right(known: Known, run: dict[str, Any], output: str, times: int) -> bool:
    """Whether this is the end that the command had, or it honestly never began."""
    if run["state"] == "lost":
        return (run["failure_reason"], times, output) == ("dispatch_ambiguous", 0, "")
    if times != 1 or output != known.output:
        return False
    if known.is_endless:
        return (run["state"], run["kill_confirmed"]) == ("cancelled", True)
    state = "completed" if known.exit_status == 0 else "failed"
    return (run["state"], run["exit_status"]) == (state, known.exit_status)


def left_on_the_machine(run_ids: set[str]) -> list[int]:
    """Processes of any box that carry one of these runs' folders in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            folder = process.environ().get("OPENAGENTS_RUN_DIRECTORY", "")
        except psutil.Error:
            continue
        if folder.rpartition("/")[2] in run_ids:
            found.append(process.pid)
    return found


def test_every_run_ends_right_whatever_is_killed(house: House) -> None:
    rng = random.Random(SEED)
    print(f"FAULT_SEED={SEED} FAULT_RUNS={RUNS}")
    house.start()
    with ThreadPoolExecutor(RUNS) as pool:
        threads = started(house, rng, pool)
        futures = [future for _, future in threads]
        while wait(futures, timeout=rng.uniform(0.0, 2.0)).not_done:
            house.revive()
            if len(house.kills) < KILLS:
                house.kill_something(rng)
    everything = [(owner, future.result()) for owner, future in threads]

    wrong = []
    for owner, ended in everything:
        times = counted(house, owner)
        wrong += [
            (known, run, output[-200:], times.count(known.key))
            for known, run, output in ended
            if not is_right(known, run, output, times.count(known.key))
        ]
    ended_runs = [run for _, ended in everything for _, run, _ in ended]
    lost = [run for run in ended_runs if run["state"] == "lost"]
    print(f"{len(ended_runs)} runs, {len(house.kills)} kills, {len(lost)} never began")
    assert wrong == []
    assert (
        len(lost) <= RUNS // 2
    )  # those that a kill met on their way to the box; more would say nothing of the rest
    assert len({run["id"] for run in ended_runs}) == RUNS
    assert_nothing_is_left(house, {run["id"] for run in ended_runs})


def assert_nothing_is_left(house: House, run_ids: set[str]) -> None:
    states = ", ".join(f"'{state}'" for state in TERMINAL)
    stuck = f"""
        select id, state, lease_owner, lease_expires_at, next_step_at, kill_confirmed from box_runs
        where state not in ({states}) or lease_owner is not null or lease_expires_at is not null
           or next_step_at is not null or kill_confirmed = false"""
    eventually(lambda: house.rows(stuck) == [], seconds=60)
    assert house.rows("select count(*) from box_runs") == [(len(run_ids),)]
    eventually(lambda: left_on_the_machine(run_ids) == [], seconds=30)
