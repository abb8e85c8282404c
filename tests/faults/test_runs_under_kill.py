"""Runs of known output while everything that drives them is killed at random moments; then everything else, in every kind of
trouble.

`FAULT_RUNS=200` runs the long form of the first, `bin/faults` that of the second; `FAULT_SEED=N` repeats what a failure printed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from runs.states import TERMINAL
from tests.faults.faulty_network import FaultyNetwork
from tests.faults.house import WORKERS, House
from tests.faults.installation import Api, Owner
from tests.faults.invariants import told
from tests.faults.known_runs import COUNTER, Known, known_run
from tests.faults.left_over import left_on_the_machine, whole_log
from tests.faults.random_round import Round, endangered_house
from tests.waiting import eventually

RUNS = int(os.environ.get("FAULT_RUNS", "40"))
SEED = int(os.environ.get("FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
KILLS = max(8, RUNS // 4)
RUNS_PER_BOX = 4 if RUNS <= 40 else 10  # an owner may start ten a minute
TROUBLE_SECONDS = 15.0
pytestmark = [pytest.mark.system, pytest.mark.timeout(300 + 6 * RUNS)]


class Killed:
    """A house, and what was killed of it."""

    def __init__(self, made: House) -> None:
        self.made, self.installation = made, made.installation
        self.kills: list[str] = []

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
                self.made.restart_database(pause)
            case "provider":
                self.made.restart_provider(pause)
            case "both workers":
                for name in WORKERS:
                    self.made.kill_part(name)
            case _:
                self.made.kill_part(victim)
        time.sleep(pause)
        self.made.revive()

    def working(self) -> dict[str, int]:
        """What is up and at work, with how likely it is to be killed: a part that only starts is left alone, so that
        a slow machine gets somewhere too."""
        weights = {"database": 2}
        if self.kills.count("provider") < KILLS // 8:
            weights["provider"] = 1
        if self.made.serves():
            weights["web"] = 2
        at_work = [name for name in WORKERS if self.made.works(name)]
        weights |= dict.fromkeys(at_work, 3)
        return weights | ({"both workers": 2} if len(at_work) == 2 else {})


@pytest.fixture(scope="module")
def endangered() -> Iterator[tuple[House, FaultyNetwork]]:
    """One house for both tests: to make and start one takes longer than what happens in it."""
    with endangered_house(SEED) as made:
        yield made


@pytest.fixture
def killed(endangered: tuple[House, FaultyNetwork]) -> Killed:
    return Killed(endangered[0])


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


Ended = list[tuple[Known, dict[str, Any], str]]


def lived(url: str, owner: Owner, known_runs: list[Known]) -> Ended:
    """One owner's runs on one box, one after the other, each with its whole log."""
    api, ended = Api(url, owner.token), []
    for known in known_runs:
        run = followed(api, owner.boxes[0][0], known)
        ended.append((known, run, whole_log(api, run["id"])))
    return ended


def started(
    killed: Killed, rng: random.Random, pool: ThreadPoolExecutor
) -> list[tuple[Owner, Future[Ended]]]:
    owners = killed.installation.owners(max(1, RUNS // RUNS_PER_BOX))
    return [
        (owner, pool.submit(lived, killed.installation.url, owner, [known_run(rng, f"run-{index}-{n}") for n in range(RUNS_PER_BOX)]))
        for index, owner in enumerate(owners)
    ]  # fmt: skip


def counted(killed: Killed, owner: Owner) -> list[str]:
    """What the commands really left on their box: one line each time that one ran."""
    api = Api(killed.installation.url, owner.token)
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


def test_every_run_ends_right_whatever_is_killed(killed: Killed) -> None:
    rng = random.Random(SEED)
    print(f"FAULT_SEED={SEED} FAULT_RUNS={RUNS}")
    killed.made.start()
    with ThreadPoolExecutor(RUNS) as pool:
        threads = started(killed, rng, pool)
        futures = [future for _, future in threads]
        while wait(futures, timeout=rng.uniform(0.0, 2.0)).not_done:
            killed.made.revive()
            if len(killed.kills) < KILLS:
                killed.kill_something(rng)
    everything = [(owner, future.result()) for owner, future in threads]

    wrong = []
    for owner, ended in everything:
        times = counted(killed, owner)
        wrong += [
            (known, run, output[-200:], times.count(known.key))
            for known, run, output in ended
            if not is_right(known, run, output, times.count(known.key))
        ]
    ended_runs = [run for _, ended in everything for _, run, _ in ended]
    lost = [run for run in ended_runs if run["state"] == "lost"]
    print(f"{len(ended_runs)} runs, {len(killed.kills)} kills, {len(lost)} never began")
    assert wrong == []
    assert (
        len(lost) <= RUNS // 2
    )  # those that a kill met on their way to the box; more would say nothing of the rest
    assert len({run["id"] for run in ended_runs}) == RUNS
    assert_nothing_is_left(killed.made, {run["id"] for run in ended_runs})
    for owner, _ in threads:  # the next test finds a house at rest
        Api(killed.installation.url, owner.token).insist("POST", f"boxes/{owner.boxes[0][0]}/stop")


def assert_nothing_is_left(made: House, run_ids: set[str]) -> None:
    states = ", ".join(f"'{state}'" for state in TERMINAL)
    stuck = f"""
        select id, state, lease_owner, lease_expires_at, next_step_at, kill_confirmed from box_runs
        where state not in ({states}) or lease_owner is not null or lease_expires_at is not null
           or next_step_at is not null or kill_confirmed = false"""
    eventually(lambda: made.rows(stuck) == [], seconds=60)
    assert made.rows("select count(*) from box_runs") == [(len(run_ids),)]
    eventually(lambda: left_on_the_machine(run_ids) == [], seconds=30)


def test_every_promise_holds_whatever_befalls_an_installation(
    endangered: tuple[House, FaultyNetwork],
) -> None:
    made, network = endangered
    print(f"FAULT_SEED={SEED}")
    made.start()

    outcome = Round(
        made, network, SEED, clients=3, say=lambda text: print(f"{time.strftime('%X')} {text}")
    ).play(TROUBLE_SECONDS)

    print(outcome.counts)
    assert outcome.broken == {}, (
        f"{told(outcome.broken)}\nagain: FAULT_SEED={SEED} bin/test {__file__}\n{outcome.logs[-20_000:]}"
    )
