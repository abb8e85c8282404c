"""One round: an installation with users at work, trouble for a while, rest, and then the invariants.

Everything is drawn from the seed: who wishes for what, what is killed, what the network does. The moments depend on the machine as well,
so a seed makes what it found likely again, and not certain.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from benchmarks.jobs import slow_model
from tests.faults.clients import Client
from tests.faults.clock_steps import step_clock
from tests.faults.computers import Computer
from tests.faults.faulty_network import FaultyNetwork
from tests.faults.house import House, house
from tests.faults.installation import Api
from tests.faults.invariants import broken
from tests.faults.left_over import left_of_delegations, whole_log
from tests.faults.looks import ATTEMPT_ENDED, JOB_ENDED, RUN_ENDED, World
from tests.faults.trouble import Trouble
from tests.faults.witness import Witness
from tests.waiting import eventually

SETTINGS = {
    "RUN_POLL_INTERVAL_MS": "500",
    "BOX_RECONCILIATION_INTERVAL_MS": "3000",
    "BOX_IDLE_TIMEOUT_SECONDS": "150",
    "BOX_MAXIMUM_BURN_RATE_PER_OWNER_MICROUSD": "100000000",
    "BOX_MAXIMUM_BURN_RATE_PER_CONVERSATION_MICROUSD": "100000000",
    "BOX_INTERACTIVE_TIMEOUT_MS": "3000",
    "BOX_RECONCILIATION_RECEIVE_TIMEOUT_MS": "5000",
}
PROVIDER_SETTINGS = {"max_active_boxes": "500", "log_level": "warning"}
SLOWEST = 4  # how much longer than meant there is trouble at most, where a crowded machine gets nowhere
REST_SECONDS = 240.0
STEP_AFTER_SECONDS = 10.0
STEP_SECONDS = 65.0
"""While everything comes to rest its long pauses (a settlement is asked for a minute after a stop) are stepped over."""

Say = Callable[[str], None]

AT_WORK = f"""
    select 'run', id::text, state from box_runs where state not in ({RUN_ENDED})
    union all select 'attempt', id::text, state from forge_assignments where state not in ({ATTEMPT_ENDED})
    union all select 'job', id::text, status from work_jobs where status not in ({JOB_ENDED})
    union all select 'item', id::text, state from box_fanout_items where state = 'queued'"""
UNSETTLED = """
    select 'box', id::text, state, create_error, settlement_attempts from conversation_boxes
    where stopped_at is null or usage_settled_at is null
    union all select 'push', repository_id::text, principal, null, null from forge_push_intents
    union all select 'run', id::text, state, failure_reason, kill_attempts from box_runs
    where next_step_at is not null or lease_owner is not null
    union all select 'attempt', id::text, state, failure_reason, step_failures from forge_assignments
    where next_step_at is not null or lease_owner is not null"""


@dataclass
class Outcome:
    """What came of a round. Nothing broken: it held."""

    seed: int
    broken: dict[str, list[object]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    logs: str = ""


@contextmanager
def endangered_house(seed: int) -> Iterator[tuple[House, FaultyNetwork]]:
    """A house whose provider is behind a network of this seed, and whose jobs ask a model of its own. Nothing is wrong yet."""
    with ExitStack() as stack:
        model = stack.enter_context(slow_model(calls=2, seconds=0.4))
        settings = SETTINGS | {"WORK_MODEL": "slow", "WORK_MODEL_BASE_URL": model}
        made = stack.enter_context(house(settings, PROVIDER_SETTINGS))
        network = stack.enter_context(FaultyNetwork(made.provider.base_url, random.Random(seed)))
        made.installation.settings["BOX_API_BASE_URL"] = network.base_url
        yield made, network


class Round:
    """The players of one round on their installation."""

    def __init__(
        self, made: House, network: FaultyNetwork, seed: int, *, clients: int, say: Say, computers: int = 0
    ) -> None:
        """`computers`: how many of the clients have one, paired, to delegate work to."""
        rng = random.Random(seed)
        self.made, self.network, self.say, self.seed = made, network, say, seed
        self.trouble = Trouble(made, network, random.Random(rng.random()), say)
        self.witness = Witness(made)
        self._rng, self._number, self._computers = rng, clients, computers
        self.clients: list[Client] = []

    def play(self, seconds: float) -> Outcome:
        """Trouble for so many seconds, then rest, then the invariants. The installation runs already."""
        with tempfile.TemporaryDirectory(prefix="faults-computers-") as folder:
            try:
                self._open()
                self._pair(Path(folder))
                return self._played(seconds)
            finally:
                for computer in self.trouble.computers:
                    computer.clear_away()

    def _played(self, seconds: float) -> Outcome:
        self._trouble_for(seconds)
        try:
            self._come_to_rest()
            found = broken(self._world())
        except AssertionError as stuck:
            found = {
                "everything comes to rest": [str(stuck), *self.made.rows(AT_WORK), *self.made.rows(UNSETTLED)]
            }
        return Outcome(self.seed, found, self._counts(), self._logs() if found else "")

    def _open(self) -> None:
        installation = self.made.installation
        owners = installation.owners(self._number, 0)
        for number, owner in enumerate(owners):
            repository = _repository(installation.url, owner.token) if number % 2 == 0 else None
            rng = random.Random(self._rng.random())
            self.clients.append(Client(number, installation.url, owner.token, rng, repository))

    def _pair(self, folder: Path) -> None:
        for client in self.clients[: self._computers]:
            token = str(client.api.session.headers["Authorization"]).removeprefix("Bearer ")
            client.computer = Computer(self.made.installation.url, token, folder / str(client.number))
            self.trouble.computers.append(client.computer)

    def _trouble_for(self, seconds: float) -> None:
        began = time.monotonic()
        self.trouble.begin()
        for player in (*self.clients, self.witness):
            player.start()
        while not self._is_enough(time.monotonic() - began, seconds):
            self.trouble.step()
            time.sleep(self._rng.uniform(0.5, 4.0))
        for client in self.clients:
            client.leave()
        self.trouble.end()

    def _is_enough(self, passed: float, seconds: float) -> bool:
        """A crowded machine gets more time, until as many runs were accepted as there are clients."""
        runs = sum(len(client.told.accepted.get("box_runs", ())) for client in self.clients)
        return passed >= seconds and (runs >= self._number or passed >= SLOWEST * seconds)

    def _come_to_rest(self) -> None:
        self.say("come to rest")
        for client in self.clients:
            client.join(120)
            assert client.broken is None, f"a client met {client.broken!r}"
        self.made.installation.await_web()
        self._for_each(self._end_what_waits)
        self._await(AT_WORK)
        eventually(lambda: not left_of_delegations(self._jobs()), seconds=60)
        self._for_each(self._stop_boxes)
        self._await(UNSETTLED)
        self.witness.leave()
        self.witness.join(30)
        self.witness.look()

    def _for_each(self, deed: Callable[[Client], None]) -> None:
        for client in self.clients:
            deed(client)

    def _end_what_waits(self, client: Client) -> None:
        """Plans that wait for places, and commands that never end by themselves."""
        for plan in _everything(client.api, "fanouts"):
            if plan["queued"]:
                client.api.insist("POST", f"fanouts/{plan['id']}/cancel")
        for run in _everything(client.api, "runs"):
            known = client.told.runs.get(run["idempotency_key"])
            if known is not None and known.is_endless and not run["is_terminal"]:
                client.api.insist("POST", f"runs/{run['id']}/cancel")

        for job in client.waiting:
            eventually(lambda job=job: _is_answered(client.api, f"jobs/{job}/cancel"), seconds=60)

    def _jobs(self) -> set[str]:
        return {row[0] for row in self.made.rows("select id::text from work_jobs")}

    def _stop_boxes(self, client: Client) -> None:
        for box in _everything(client.api, "boxes"):
            if box["stopped_at"] is None:
                eventually(lambda box=box: _is_answered(client.api, f"boxes/{box['id']}/stop"), seconds=60)

    def _await(self, query: str) -> None:
        """Wait until nothing comes of the query. What only waits for a time is given it."""
        ends, stepped = time.monotonic() + REST_SECONDS, time.monotonic()
        while left := self.made.rows(query):
            self.made.revive()
            assert time.monotonic() < ends, f"still {len(left)} after {REST_SECONDS:.0f} s"
            if time.monotonic() - stepped > STEP_AFTER_SECONDS:
                stepped = time.monotonic()
                with self.made.connect(autocommit=True) as link:
                    step_clock(link, STEP_SECONDS)
            time.sleep(0.3)

    def _world(self) -> World:
        self.say("look at everything")
        accepted: dict[str, set[str]] = {}
        logs: dict[str, str] = {}
        for client in self.clients:
            for table, ids in client.told.accepted.items():
                accepted.setdefault(table, set()).update(ids)
            logs |= {run["id"]: whole_log(client.api, run["id"]) for run in _everything(client.api, "runs")}
        [(marker,)] = self.made.rows("select ownership_marker from installation")
        return World(
            rows=self.made.rows,
            url=self.made.installation.url,
            provider_folder=self.made.provider.state_dir,
            marker=marker,
            runs={key: known for client in self.clients for key, known in client.told.runs.items()},
            accepted=accepted,
            logs=logs,
            changed=self.witness.changed,
        )

    def _counts(self) -> dict[str, int]:
        """What was done, and to what: a round in which nothing happened would prove nothing."""
        tables = {"boxes": "conversation_boxes", "runs": "box_runs", "attempts": "forge_assignments", "jobs": "work_jobs", "delegations": "work_delegations"}  # fmt: skip
        rows = {what: self.made.rows(f"select count(*) from {table}")[0][0] for what, table in tables.items()}
        return rows | {
            "troubles": sum(self.trouble.counts.values()),
            "faulty requests": self.network.counts.total(),
        }

    def _logs(self) -> str:
        return "\n".join(
            f"--- {name}\n{self.made.installation.log(name)[-200_000:]}"
            for name in self.made.installation.parts
        )


def _repository(url: str, token: str) -> str:
    """A new repository with one commit on `main`; its id."""
    made = Api(url, token).insist("POST", "repositories", json={"name": "work"})
    host = f"x:{token}@{made['clone_url'].removeprefix('http://')}"
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    with tempfile.TemporaryDirectory(prefix="faults-git-") as folder:
        for arguments in (
            ["init", "--quiet", "--initial-branch=main"],
            [*identity, "commit", "--quiet", "--allow-empty", "-m", "begin"],
            ["push", "--quiet", f"http://{host}", "main"],
        ):
            subprocess.run(
                ["git", *arguments], cwd=Path(folder), env=environment | {"HOME": folder}, check=True, timeout=120,
            )  # fmt: skip
    return str(made["id"])


def _everything(api: Api, path: str) -> list[dict[str, Any]]:
    """Every row of a list, page after page."""
    found, query = [], {"page_size": "200"}
    while True:
        page = api.insist("GET", path, params=query)
        found += page["results"]
        if not page["next"]:
            return found
        query |= {"cursor": requests.utils.unquote(page["next"].partition("cursor=")[2].partition("&")[0])}


def _is_answered(api: Api, path: str) -> bool:
    """Whether what is to end has ended, or its end is under way."""
    try:
        answer = api("POST", path)
    except requests.RequestException:
        return False
    return answer.ok or answer.status_code in {404, 409}
