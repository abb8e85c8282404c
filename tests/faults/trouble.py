"""What befalls an installation: parts are killed, the database restarts, the network turns bad, the clock steps."""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable

from tests.faults.clock_steps import step_clock
from tests.faults.computers import Computer
from tests.faults.fault_points import DRIVEN, declared
from tests.faults.faulty_network import FaultyNetwork
from tests.faults.house import WORKERS, House

STEPS_SECONDS = (-20.0, -5.0, 10.0, 60.0, 120.0)
PAST_LEASES_SECONDS = 120.0
FROZEN_SECONDS = (0.5, 4.0)
FIRST_WEATHER = 0.15
WEATHER = (0.0, 0.05, 0.15, 0.3, 0.6)
POINT_SHARE = 0.3
"""How often a worker that comes back is to die at a point of its own."""


class Trouble:
    """Does one thing after the other to `made`, drawn from `rng`, and counts what it did."""

    def __init__(
        self, made: House, network: FaultyNetwork, rng: random.Random, say: Callable[[str], None]
    ) -> None:
        self.made, self.network, self.rng, self.say = made, network, rng, say
        self.counts: collections.Counter[str] = collections.Counter()
        self.computers: list[Computer] = []
        self._points = list(declared(DRIVEN))

    def begin(self) -> None:
        """The network is bad from the start."""
        self.network.rate = FIRST_WEATHER

    def step(self) -> None:
        """One trouble, and whoever was killed comes back."""
        deeds = {
            self.kill_worker: 3,
            self.kill_both_workers: 1,
            self.freeze_worker: 2,
            self.kill_web: 1,
            self.kill_scheduler: 1,
            self.kill_database: 1,
            self.kill_provider: 1,
            self.change_weather: 4,
            self.step_the_clock: 2,
        }
        if self.computers:
            deeds[self.kill_connector] = 2
        self.rng.choices(list(deeds), weights=list(deeds.values()))[0]()
        time.sleep(self.rng.uniform(0.0, 0.5))
        self.revive()

    def end(self) -> None:
        """Nothing goes wrong from here on."""
        self.network.rate = 0.0
        self.made.revive()

    def kill_worker(self) -> None:
        """A worker that is at work, so that a slow machine gets somewhere too."""
        at_work = [name for name in WORKERS if self.made.works(name)]
        if at_work:
            self._kill(self.rng.choice(at_work))

    def kill_both_workers(self) -> None:
        if all(self.made.works(name) for name in WORKERS):
            for name in WORKERS:
                self._kill(name)

    def freeze_worker(self) -> None:
        """It sleeps through its leases, and wakes up when others hold what it held."""
        at_work = [name for name in WORKERS if self.made.works(name)]
        if at_work:
            name = self.rng.choice(at_work)
            self._note(f"freeze {name}")
            with self.made.frozen(name):
                self._step_by(PAST_LEASES_SECONDS)
                time.sleep(self.rng.uniform(*FROZEN_SECONDS))

    def kill_web(self) -> None:
        if self.made.serves():
            self._kill("web")

    def kill_scheduler(self) -> None:
        if "scheduler" in self.made.installation.parts:
            self._kill("scheduler")

    def kill_connector(self) -> None:
        self._note("kill a connector")
        self.rng.choice(self.computers).kill9()

    def kill_database(self) -> None:
        self._note("restart the database")
        self.made.restart_database(self.rng.uniform(0.0, 0.5))

    def kill_provider(self) -> None:
        self._note("restart the provider")
        self.made.restart_provider(self.rng.uniform(0.0, 0.5))

    def change_weather(self) -> None:
        """How much of what is sent to the provider goes wrong from now on."""
        self.network.rate = self.rng.choice(WEATHER)
        self._note("change the network", f"to {self.network.rate:.0%} faults")

    def step_the_clock(self) -> None:
        self._step_by(self.rng.choice(STEPS_SECONDS))

    def _step_by(self, seconds: float) -> None:
        with self.made.connect(autocommit=True) as link:
            stepped = step_clock(link, seconds)
        self._note("step the clock", f"by {seconds:+g} s" if stepped else "(too busy)")

    def revive(self) -> None:
        """As their supervisor would. A worker may be one that dies at a point of its own."""
        for name in WORKERS:
            part = self.made.installation.parts[name]
            if not part.is_running and self.rng.random() < POINT_SHARE:
                point = self.rng.choice(self._points)
                self._note("start a worker that dies", f"at {point}")
                plain = part.environment
                part.environment = {**plain, "FAULT_POINTS": f"{point}=kill"}
                part.ensure()
                part.environment = plain
        self.made.revive()
        for computer in self.computers:
            computer.ensure()

    def _kill(self, name: str) -> None:
        self._note(f"kill {name}")
        self.made.kill_part(name)

    def _note(self, deed: str, detail: str = "") -> None:
        self.counts[deed] += 1
        self.say(f"{deed} {detail}".rstrip())
