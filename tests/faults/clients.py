"""Users of an installation in trouble: they create, run, cancel and stop by the public API, and remember what they were told.

Some are patient and repeat a request without an answer under its key; some go away. Whatever was answered with success is accepted,
and has to be there afterwards.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.faults.computers import WAITS, Computer
from tests.faults.installation import Api
from tests.faults.known_runs import COUNTER, Known, known_run

LIVE_BOXES = 3  # of one client, beside what its plans make
JOB_GOAL = "say what there is to say"
ATTEMPT = f"""
echo "assignment-$OPENAGENTS_ASSIGNMENT" >> {COUNTER}
cat "$OPENAGENTS_RUN_DIRECTORY/forge-credential" > "$HOME/credential-$OPENAGENTS_ASSIGNMENT"
echo "$OPENAGENTS_ASSIGNMENT" > work && git add work && git commit --quiet -m work && git push --quiet
"""

Answer = dict[str, Any]


@dataclass
class Told:
    """What one client asked for under which key, and the ids that it was answered."""

    runs: dict[str, Known] = field(default_factory=dict)
    accepted: dict[str, set[str]] = field(default_factory=dict)

    def accept(self, kind: str, answer: Answer) -> str:
        self.accepted.setdefault(kind, set()).add(answer["id"])
        return str(answer["id"])


class Client(threading.Thread):
    """One user at work until `leave`. `repository` is the id of a repository of theirs, if attempts are to be made."""

    def __init__(
        self, number: int, url: str, token: str, rng: random.Random, repository: str | None = None
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.number, self.rng, self.repository = number, rng, repository
        self.api, self.told = Api(url, token), Told()
        self.computer: Computer | None = None
        self.waiting: set[str] = set()
        """Delegations that end only by being cancelled."""
        self.broken: Exception | None = None
        self.steps = 0
        self._leaving = threading.Event()
        self._living: list[Answer] = []

    def run(self) -> None:
        try:
            while not self._leaving.wait(self.rng.uniform(0.05, 1.2)):
                self.act()
        except Exception as error:
            self.broken = error

    def leave(self) -> None:
        self._leaving.set()

    def act(self) -> None:
        """One thing that a user may want to do."""
        wishes: dict[Callable[[], None], int] = {
            self.look: 2,
            self.create_box: 3,
            self.plan_boxes: 1,
            self.start_run: 8,
            self.cancel_run: 2,
            self.stop_box: 1,
            self.short_command: 1,
            self.start_job: 2,
            self.cancel_job: 1,
        }
        if self.repository is not None:
            wishes |= {self.attempt: 3, self.cancel_attempt: 1}
        if self.computer is not None:
            wishes |= {self.delegate: 4}
        self.rng.choices(list(wishes), weights=list(wishes.values()))[0]()
        self.steps += 1

    def look(self) -> None:
        page = self.ask("GET", "boxes", params={"page_size": 200})
        if page is not None:
            self._living = [box for box in page["results"] if box["stopped_at"] is None]

    def create_box(self) -> None:
        self.look()
        if len(self._living) >= LIVE_BOXES:
            return
        body = {"budgeted": True, "wait": self.rng.choice([0, 0, 3])}
        if box := self.ask("POST", "boxes", json=body, headers=self._key("box")):
            self.told.accept("conversation_boxes", box)

    def plan_boxes(self) -> None:
        body = {"count": self.rng.randint(1, 2), "budgeted": True}
        if plan := self.ask("POST", "fanouts", json=body, headers=self._key("plan")):
            self.told.accept("box_fanout_requests", plan)

    def start_run(self) -> None:
        if not self._living:
            return self.look()
        key = self._key("run")["Idempotency-Key"]
        known = self.told.runs[key] = known_run(self.rng, key)
        body = {
            "box": self.rng.choice(self._living)["id"],
            "command": known.command,
            "idempotency_key": key,
        }
        if run := self.ask("POST", "runs", json=body):
            self.told.accept("box_runs", run)
        return None

    def cancel_run(self) -> None:
        self._post_to("runs/{}/cancel", "box_runs")

    def stop_box(self) -> None:
        self._post_to("boxes/{}/stop", "conversation_boxes")

    def short_command(self) -> None:
        if self._living:
            path = f"boxes/{self.rng.choice(self._living)['id']}/commands"
            self.ask("POST", path, json={"command": "true", "timeout_seconds": 10}, tries=1)

    def start_job(self) -> None:
        body = {"goal": JOB_GOAL}
        if job := self.ask("POST", "jobs", json=body, headers=self._key("job")):
            self.told.accept("work_jobs", job)

    def delegate(self) -> None:
        assert self.computer is not None
        body = self.computer.wish(self.rng)
        if job := self.ask("POST", "jobs", json=body, headers=self._key("delegation")):
            self.told.accept("work_jobs", job)
            if WAITS in body["prompt"]:
                self.waiting.add(job["id"])

    def cancel_job(self) -> None:
        self._post_to("jobs/{}/cancel", "work_jobs")

    def attempt(self) -> None:
        """An attempt at a new issue, so that none is claimed already."""
        if not self._living:
            return self.look()
        issue = self.ask(
            "POST", f"repositories/{self.repository}/issues", json={"title": "work"}, headers=self._key("issue")
        )  # fmt: skip
        if issue is None:
            return None
        body = {
            "repository": self.repository,
            "issue_number": issue["number"],
            "box": self.rng.choice(self._living)["id"],
            "command": ATTEMPT,
        }
        if made := self.ask("POST", "assignments", json=body, headers=self._key("attempt")):
            self.told.accept("forge_assignments", made)
        return None

    def cancel_attempt(self) -> None:
        self._post_to("assignments/{}/cancel", "forge_assignments")

    def ask(self, method: str, path: str, *, tries: int | None = None, **options: Any) -> Answer | None:
        """The JSON of a 2xx answer; None for a refusal, and where nothing was answered in as many tries as this user has patience for."""
        for _ in range(tries or self.rng.choice([1, 1, 2, 5])):
            try:
                answer = self.api(method, path, **options)
            except requests.RequestException:
                time.sleep(self.rng.uniform(0.1, 1.0))
                continue
            if answer.ok:
                return dict(answer.json())
            if answer.status_code < 500:
                return None
            time.sleep(self.rng.uniform(0.1, 1.0))
        return None

    def _post_to(self, path: str, kind: str) -> None:
        """POST to one of the things that were accepted, whatever has become of it since."""
        if known := sorted(self.told.accepted.get(kind, ())):
            self.ask("POST", path.format(self.rng.choice(known)))

    def _key(self, what: str) -> dict[str, str]:
        return {"Idempotency-Key": f"{what}-of-{self.number}-{self.steps}"}
