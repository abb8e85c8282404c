"""Mixed load, through the public API and git alone: owners who live side by side, viewers, and somebody at the pages."""

from __future__ import annotations

import random
import re
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests

from openagents_site.launcher import program
from tests.faults.installation import Api
from tests.faults.known_runs import Known, known_run

READY = frozenset({"ready", "idle", "running"})
ATTEMPT = 'echo "$OPENAGENTS_RUN_DIRECTORY" > mended && git add --all && git commit --quiet -m "Mend it" && git push --quiet'
PAGES = ("/admin/", "/fleet/", "/admin/boxes/box/", "/admin/runs/run/", "/metrics", "/api/v1/fleet?all=true")
LOGIN = "/accounts/login/"
RUNS_EACH = 3  # of one box
LONGEST_REST_SECONDS = 6.0


class Load:
    """What is done until `over` is set; how often each thing was done, and what came out wrong."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.over = threading.Event()
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.live: dict[str, str] = {}  # run id -> token of its owner
        self._threads: list[threading.Thread] = []

    @property
    def actions(self) -> int:
        """Things that leave rows of the ledger."""
        return sum(self.done[name] for name in ("boxes", "runs", "commands", "jobs", "attempts"))

    def begin(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=self._until_over, args=(target, *arguments), daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self, seconds: float) -> list[threading.Thread]:
        """Begin nothing more, and wait for what was begun; the threads that did not come to an end."""
        self.over.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        return [thread for thread in self._threads if thread.is_alive()]

    def _until_over(self, target: Callable[..., None], *arguments: Any) -> None:
        while not self.over.is_set():
            try:
                target(self, *arguments)
            except Exception:
                self.wrong.append(traceback.format_exc(limit=-3))
                self.over.wait(5.0)


class Owner:
    """One user: box after box, with runs, an attempt and a job on each."""

    def __init__(self, url: str, token: str, number: int) -> None:
        self.api, self.token = Api(url, token), token
        self.rng = random.Random(number)  # noqa: S311 - choices that can be repeated
        self.repository = self.api.insist("POST", "repositories", json={"name": f"shop-{number}"})
        program.push(self.repository["clone_url"], token)
        issues = f"repositories/{self.repository['id']}/issues"
        self.issue = self.api.insist("POST", issues, json={"title": "It is broken", "body": "Mend it."})

    def webhook(self, url: str) -> None:
        self.api.insist("POST", "webhooks", json={"url": url})

    def live(self, load: Load) -> None:
        """One box from its beginning to its end."""
        box = self._box(load)
        try:
            for _ in range(RUNS_EACH):
                self._run(load, box)
            self._command(load, box)
            self._attempt(load, box)
            self._job(load)
        finally:
            self.api.insist("POST", f"boxes/{box['id']}/stop")
        load.over.wait(self.rng.uniform(0.0, LONGEST_REST_SECONDS))

    def _box(self, load: Load) -> dict[str, Any]:
        box: dict[str, Any] = self.api.insist(
            "POST", "boxes", json={"wait": 25}, headers={"Idempotency-Key": str(uuid.uuid4())}
        )
        while box["state"] not in READY:
            assert box["stopped_at"] is None, box
            time.sleep(0.5)
            box = self.api.insist("GET", f"boxes/{box['id']}")
        load.done["boxes"] += 1
        return box

    def _run(self, load: Load, box: dict[str, Any]) -> None:
        """A command of known output, streamed to its end."""
        known = known_run(self.rng, f"run-{uuid.uuid4().hex[:8]}")
        body = {"box": box["id"], "command": known.command, "idempotency_key": known.key}
        run = self.api.insist("POST", "runs", json=body)
        load.live[run["id"]] = self.token
        try:
            if known.is_endless:
                self._await_start(run)
                self.api.insist("POST", f"runs/{run['id']}/cancel")
            followed(load.url, run["id"], self.token)
            ended = self.api.insist("GET", f"runs/{run['id']}", params={"wait": 20})
            if problem := what_is_wrong(known, ended, self._log(run["id"])):
                load.wrong.append(problem)
        finally:
            load.live.pop(run["id"], None)
        load.done["runs"] += 1

    def _await_start(self, run: dict[str, Any]) -> None:
        while run["state"] != "running":
            run = self.api.insist("GET", f"runs/{run['id']}", params={"wait": 5})

    def _log(self, run_id: str) -> str:
        text: str = ""
        offset = 0
        while True:
            piece = self.api.insist("GET", f"runs/{run_id}/log", params={"offset": offset})
            text += piece["output"]
            if piece["next_offset"] <= offset:
                return text
            offset = piece["next_offset"]

    def _command(self, load: Load, box: dict[str, Any]) -> None:
        told = self.api.insist("POST", f"boxes/{box['id']}/commands", json={"command": "echo here"})
        if told["stdout"] != "here\n":
            load.wrong.append(f"a short command: {told}")
        load.done["commands"] += 1

    def _attempt(self, load: Load, box: dict[str, Any]) -> None:
        wanted = {"repository": self.repository["id"], "issue_number": str(self.issue["number"])}
        body = wanted | {"box": box["id"], "command": ATTEMPT}
        attempt = self.api.insist("POST", "assignments", json=body)
        while not attempt["is_terminal"]:
            attempt = self.api.insist("GET", f"assignments/{attempt['id']}", params={"wait": 20})
        if attempt["state"] != "completed" or not attempt["terminal_commit"]:
            load.wrong.append(f"an attempt: {attempt}")
        load.done["attempts"] += 1

    def _job(self, load: Load) -> None:
        job = self.api.insist("POST", "jobs", json={"goal": "Look through the plan"})
        while not job["is_terminal"]:
            job = self.api.insist("GET", f"jobs/{job['id']}", params={"wait": 20})
        if job["status"] != "completed":
            load.wrong.append(f"a job: {job}")
        load.done["jobs"] += 1


def what_is_wrong(known: Known, run: dict[str, Any], log: str) -> str:
    """Why this is not the end that the command had; nothing if it is."""
    state = "cancelled" if known.is_endless else "completed" if known.exit_status == 0 else "failed"
    right = run["state"] == state and log == known.output
    return "" if right else f"a run that should have {state}: {run}, {len(log)} of {len(known.output)}"


def followed(url: str, run_id: str, token: str) -> int:
    """Take the stream of a run to its end; how many bytes came."""
    with requests.Session() as session:
        session.trust_env = False
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        address = f"{url}/api/v1/runs/{run_id}/stream"
        with session.get(address, headers=headers, stream=True, timeout=60) as answer:
            answer.raise_for_status()
            return sum(len(piece) for piece in answer.iter_content(64 * 1024))


def view(load: Load, rng: random.Random) -> None:
    """Watch some run that is under way, to its end."""
    live = list(load.live.items())
    if not live:
        load.over.wait(0.5)
        return
    followed(load.url, *rng.choice(live))
    load.done["views"] += 1
    load.over.wait(0.5)


def look_around(load: Load, password: str) -> None:
    """Sign in, look at the pages of staff, sign out."""
    with requests.Session() as browser:
        browser.trust_env = False
        sign_in(browser, load.url, password)
        for path in PAGES:
            answer = browser.get(load.url + path, timeout=60)
            if answer.status_code != 200:
                load.wrong.append(f"{path}: {answer.status_code}")
            load.over.wait(1.0)
        page = browser.get(f"{load.url}/accounts/logout/", timeout=60).text
        browser.post(f"{load.url}/accounts/logout/", data={"csrfmiddlewaretoken": csrf(page)}, timeout=60)
    load.done["visits"] += 1


def sign_in(browser: requests.Session, url: str, password: str) -> None:
    page = browser.get(url + LOGIN, timeout=60).text
    form = {"csrfmiddlewaretoken": csrf(page), "login": "admin", "password": password}
    answer = browser.post(url + LOGIN, data=form, timeout=60)
    assert urlsplit(answer.url).path != LOGIN, answer.text[:500]


def csrf(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found, page[:500]
    return found[1]
