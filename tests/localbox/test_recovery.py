"""The provider is killed, again and again; its boxes and its promises are not."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.exceptions import ServiceException
from ascii_box_sdk.models.create_box_request import CreateBoxRequest

from localbox.uids import block
from tests.localbox.client import Http, new_key, ready_box, run, sdk, wait_ready, wait_state, wait_until
from tests.localbox.conftest import sandboxes_here
from tests.localbox.server import LocalboxServer

SETTLED = ("ready", "archived", "error")


in_each_sandbox = pytest.mark.parametrize("sandbox", sandboxes_here())


@pytest.fixture
def sandbox() -> str:
    """What a server runs boxes in, where a test does not choose."""
    return "auto"


@pytest.fixture
def server(sandbox: str) -> Iterator[LocalboxServer]:
    with LocalboxServer(sandbox=sandbox) as started:
        yield started


@pytest.fixture
def api(server: LocalboxServer) -> BoxApi:
    return sdk(server)


def processes_of(server: LocalboxServer) -> list[psutil.Process]:
    """Every process of this installation, the provider's own too: by the uids of its boxes, or by its folder."""
    uids = block(server.state_dir) or range(0)
    return [process for process in psutil.process_iter() if belongs(process, server, uids)]


def belongs(process: psutil.Process, server: LocalboxServer, uids: range) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            return False
        return process.uids().real in uids or str(server.state_dir) in described(process)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def described(process: psutil.Process) -> str:
    """The text of a process in which its box's id and folder occur."""
    return " ".join([*process.cmdline(), *process.environ().values()])


def names_one_of(process: psutil.Process, boxes: set[str]) -> bool:
    """Whether it belongs to one of the boxes, or has just ended."""
    try:
        return any(box_id in described(process) for box_id in boxes)
    except psutil.NoSuchProcess:
        return True


def records(server: LocalboxServer) -> contextlib.closing[sqlite3.Connection]:
    """The provider's own records, for reading."""
    path = f"file:{server.state_dir}/private/localbox.sqlite3?mode=ro"
    return contextlib.closing(sqlite3.connect(path, uri=True))


def supervisor_pid(server: LocalboxServer, box_id: str) -> int:
    with records(server) as rows:
        found = rows.execute("SELECT json_extract(supervisor, '$.pid') FROM boxes WHERE id = ?", (box_id,))
        return int(found.fetchone()[0])


@in_each_sandbox
def test_a_running_command_outlives_a_killed_provider(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)
    run(api, box.id, "mkfifo gate")
    started = run(api, box.id, "echo before; read line < gate; echo after; exit 5", detached=True)

    server.restart()
    adopted = api.command_status(box.id, started.process_id)
    run(api, box.id, "echo go > gate")
    ended = wait_until(
        lambda: api.command_status(box.id, started.process_id), wanted=lambda seen: not seen.running
    )

    assert (adopted.status, adopted.pid) == ("running", started.pid)
    assert (ended.status, ended.exit_code, ended.stdout) == ("exited", 5, "before\nafter\n")
    assert api.get(box.id).box.state == "ready"
    assert api.usage(box.id).running


def test_an_end_that_came_while_the_provider_was_dead_is_known(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)
    started = run(api, box.id, "while ! test -e go; do sleep 0.05; done; echo over; exit 6", detached=True)
    home = server.state_dir / "boxes" / box.id / "home"
    log = home / ".openagents" / "commands" / str(started.process_id) / "stdout.log"

    server.kill9()
    (home / "go").touch()
    wait_until(lambda: log.read_text() == "over\n")
    server.start()

    ended = wait_until(
        lambda: api.command_status(box.id, started.process_id), wanted=lambda seen: not seen.running
    )
    assert (ended.status, ended.exit_code, ended.stdout) == ("exited", 6, "over\n")


def test_a_key_still_means_its_box_after_a_kill(server: LocalboxServer, api: BoxApi) -> None:
    key, request = new_key(), CreateBoxRequest(ttl_seconds=900)
    made = api.create(key, create_box_request=request).box

    server.restart()

    assert api.create(key, create_box_request=request).box.id == made.id
    assert len(api.boxes().boxes) == 1
    assert wait_ready(api, made.id).state == "ready"


@in_each_sandbox
def test_a_box_whose_supervisor_died_with_the_provider_is_archived(
    server: LocalboxServer, api: BoxApi
) -> None:
    box = ready_box(api)
    run(api, box.id, "echo kept > file; sleep 300 & disown", detached=True)
    pid = supervisor_pid(server, box.id)

    server.kill9()
    os.kill(pid, signal.SIGKILL)
    server.start()

    archived = wait_state(api, box.id, "archived")
    assert archived.snapshot_available
    assert not api.usage(box.id).running
    assert processes_of(server) == [psutil.Process(server.process.pid)]
    api.resume(box.id)
    wait_ready(api, box.id)
    assert run(api, box.id, "cat file").stdout == "kept\n"


def test_a_box_that_died_under_the_provider_is_archived(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)

    os.kill(supervisor_pid(server, box.id), signal.SIGKILL)

    wait_state(api, box.id, "archived")
    assert not api.usage(box.id).running


def test_time_that_nobody_saw_is_not_charged(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)
    pid = supervisor_pid(server, box.id)

    server.kill9()
    os.kill(pid, signal.SIGKILL)
    died_at = time.time()
    time.sleep(1.1)  # the time in question
    server.start()
    wait_state(api, box.id, "archived")

    with records(server) as rows:
        (ended_at,) = rows.execute("SELECT ended_at FROM stretches WHERE box_id = ?", (box.id,)).fetchone()
    assert ended_at <= died_at


def test_a_setup_script_runs_once_though_the_provider_is_killed(server: LocalboxServer, api: BoxApi) -> None:
    script = "echo once >> runs; while ! test -e go; do sleep 0.05; done; exit 3"
    box = ready_box(api, setup_script=script)
    wait_until(lambda: run(api, box.id, "test -s runs").success)

    server.restart()
    run(api, box.id, "touch go")

    after = wait_until(lambda: api.get(box.id).box, wanted=lambda seen: seen.setup_status == "failed")
    assert after.setup_error.startswith("exit code 3")
    assert run(api, box.id, "cat runs").stdout == "once\n"


@in_each_sandbox
def test_a_clean_stop_ends_every_process_and_keeps_the_files(server: LocalboxServer, api: BoxApi) -> None:
    boxes = [ready_box(api) for _ in range(3)]
    for box in boxes:
        run(api, box.id, "echo kept > file; (setsid sleep 300 &); sleep 300", detached=True)

    assert server.stop() == 0
    assert processes_of(server) == []

    server.start()
    assert {row.state for row in api.boxes().boxes} == {"archived"}
    api.resume(boxes[0].id)
    wait_ready(api, boxes[0].id)
    assert run(api, boxes[0].id, "cat file").stdout == "kept\n"


def test_a_clean_stop_answers_the_commands_that_are_running(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)
    answers: list[Any] = []

    def wait_for_answer() -> None:
        try:
            answers.append(run(api, box.id, "touch begun; sleep 300", timeout_seconds=600))
        except ServiceException as error:
            answers.append(error)

    waiting = threading.Thread(target=wait_for_answer)
    waiting.start()
    wait_until((server.state_dir / "boxes" / box.id / "home" / "begun").exists)

    assert server.stop() == 0
    waiting.join(30)
    (answer,) = answers
    assert getattr(answer, "status", None) == 502 or answer.exit_code != 0


@in_each_sandbox
def test_a_sweep_ends_what_a_killed_provider_left(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)
    run(api, box.id, "(setsid sleep 300 &); sleep 300", detached=True)

    server.kill9()
    assert processes_of(server) != []
    swept = server.sweep()

    assert (swept.returncode, swept.stderr.count("Traceback")) == (0, 0)
    assert processes_of(server) == []
    server.start()
    assert api.get(box.id).box.state == "archived"


def test_a_sweep_beside_a_running_server_is_refused(server: LocalboxServer, api: BoxApi) -> None:
    box = ready_box(api)

    refused = server.sweep()

    assert refused.returncode == 2
    assert refused.stderr == f"localbox: Another localbox is using {server.state_dir}.\n"
    assert run(api, box.id, "true").success


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_or_doubled_however_often_it_is_killed(
    server: LocalboxServer, api: BoxApi, seed: int
) -> None:
    """Creates, stops, resumes, forks and deletes run while the provider is killed at random moments."""
    traffic = Traffic(server, random.Random(seed))

    for _ in range(4):
        traffic.begin()
        time.sleep(traffic.chance.uniform(0.0, 0.4))
        server.kill9()
        traffic.end()
        server.start()

    rows = wait_until(
        lambda: every_box(server), wanted=lambda rows: all(row["state"] in SETTLED for row in rows)
    )
    wait_until(lambda: one(server, "SELECT count(*) FROM deletions WHERE status != 'completed'") == 0)
    ready = {row["id"] for row in rows if row["state"] == "ready"}
    assert all(traffic.box_of(key) == box_id for key, box_id in traffic.made.items())
    assert all(run(api, box_id, "true").success for box_id in ready)
    assert processes_beside(server, ready) == []
    assert one(server, "SELECT count(*) FROM stretches WHERE ended_at IS NULL") == len(ready)
    assert one(server, "SELECT count(*) FROM idempotency_keys") == one(
        server, "SELECT count(*) FROM boxes WHERE origin_id IS NULL"
    )


def every_box(server: LocalboxServer) -> list[dict[str, Any]]:
    return list(Http(server)("GET", "/boxes?limit=200").json()["boxes"])


def one(server: LocalboxServer, query: str) -> int:
    """The number that a query of the provider's records gives."""
    with records(server) as rows:
        return int(rows.execute(query).fetchone()[0])


def processes_beside(server: LocalboxServer, ready: set[str]) -> list[psutil.Process]:
    """Processes of boxes that are not up; also of boxes that the records do not know any more."""
    theirs = [process for process in processes_of(server) if process.pid != server.process.pid]
    return [process for process in theirs if not names_one_of(process, ready)]


class Traffic:
    """Clients that do not give up: each keeps its key, and asks again when an answer did not come."""

    def __init__(self, server: LocalboxServer, chance: random.Random) -> None:
        self.server = server
        self.chance = chance
        self.made: dict[str, str] = {}  # key -> the box it was told
        self.thread: threading.Thread | None = None
        self.ended = False

    def begin(self) -> None:
        self.ended = False
        self.thread = threading.Thread(target=self._go_on)
        self.thread.start()

    def end(self) -> None:
        assert self.thread is not None
        self.ended = True
        self.thread.join(60)
        assert not self.thread.is_alive()

    def box_of(self, key: str) -> str:
        """Which box the key means now."""
        answer = Http(self.server)(
            "POST", "/boxes", json={"ttlSeconds": 900}, headers={"Idempotency-Key": key}
        )
        if answer.status_code == 409:
            assert "deleted" in answer.json()["message"]
            return self.made[key]
        assert answer.json()["box"]["id"] == self.made[key]
        return str(answer.json()["box"]["id"])

    def _go_on(self) -> None:
        http = Http(self.server)
        while not self.ended:
            try:
                self._act(http)
            except Exception:  # the server was killed under it
                return

    def _act(self, http: Http) -> None:
        key = new_key()
        if len(self.made) < 6:
            made = http("POST", "/boxes", json={"ttlSeconds": 900}, headers={"Idempotency-Key": key})
            self.made[key] = made.json()["box"]["id"]
        box_id = self.chance.choice(list(self.made.values()))
        action = self.chance.choice(["stop", "resume", "fork", "delete", "command"])
        if action == "delete":
            http("DELETE", f"/boxes/{box_id}", headers={"X-Ascii-Confirm-Delete": box_id})
        elif action == "command":
            http("POST", f"/boxes/{box_id}/commands", json={"command": "sleep 300", "detached": True})
        else:
            http("POST", f"/boxes/{box_id}/{action}")
