"""From a fresh clone to a finished run, and what becomes of it when any process is killed."""

from __future__ import annotations

import re
import secrets
import stat
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from openagents_site.launcher.api_client import Api
from tests.localbox.server import LocalboxServer
from tests.peers import needs
from tests.postgres import ensure_test_cluster
from tests.waiting import eventually

from .installation import START_SECONDS, Clone, Up, command_lines, fresh_clone, kill, persistently

pytestmark = [pytest.mark.system, pytest.mark.timeout(700)]
LINES = 60
COMMAND = f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; sleep 0.5; done"
WHOLE_OUTPUT = "".join(f"line {n}\n" for n in range(1, LINES + 1))
PARTS = ("web", "scheduler", "worker", "provider", "postgres")


@pytest.fixture(scope="module")
def clone() -> Iterator[Clone]:
    with fresh_clone() as clone:
        yield clone


@pytest.fixture(scope="module")
def once(clone: Clone) -> tuple[int, str]:
    """The first start of the fresh clone: exit status and everything it said."""
    up = clone.starts("--once")
    return up.ends(START_SECONDS), up.said()


@pytest.fixture(scope="module")
def up(clone: Clone, once: tuple[int, str]) -> Iterator[Up]:
    """The second start, which the tests share until one of them kills it."""
    up = clone.is_up("--no-demo")
    yield up
    if up.process.poll() is None:
        up.interrupt()


@contextmanager
def running_box(api: Api) -> Iterator[dict[str, Any]]:
    key = str(uuid.uuid4())
    box = persistently(lambda: api.post("/api/v1/boxes", {"wait": 20}, key))
    try:
        yield eventually(lambda: _if(_box(api, box), "state", ("ready", "idle", "running")))
    finally:
        persistently(lambda: api.post(f"/api/v1/boxes/{box['id']}/stop"))


def started_run(api: Api, box: dict[str, Any], command: str = COMMAND) -> dict[str, Any]:
    key = str(uuid.uuid4())
    run = persistently(lambda: api.post("/api/v1/runs", {"box": box["id"], "command": command}, key))
    return eventually(lambda: _if(_run(api, run), "state", ("running", "completed")))


def _box(api: Api, box: dict[str, Any]) -> dict[str, Any]:
    return persistently(lambda: api.get(f"/api/v1/boxes/{box['id']}"))


def _run(api: Api, run: dict[str, Any]) -> dict[str, Any]:
    return persistently(lambda: api.get(f"/api/v1/runs/{run['id']}"))


def ended(api: Api, run: dict[str, Any]) -> dict[str, Any]:
    return eventually(
        lambda: _if(persistently(lambda: api.get(f"/api/v1/runs/{run['id']}")), "is_terminal", (True,))
    )


def output(api: Api, run: dict[str, Any]) -> str:
    return str(persistently(lambda: api.get(f"/api/v1/runs/{run['id']}/output?offset=0"))["output"])


def _if(row: dict[str, Any], name: str, values: tuple[object, ...]) -> dict[str, Any]:
    return row if row[name] in values else {}


def test_a_fresh_clone_does_a_run_in_a_box_and_ends(once: tuple[int, str]) -> None:
    status, said = once

    assert status == 0, said
    assert said.index("issue #1: greet says helo") < said.index("not ok  Helo, world!")
    assert said.index("not ok  Helo, world!") < said.index("ok      Hello, world!")
    assert "the run completed, exit status 0" in said
    assert re.search("the attempt completed: agent/issue-1 is at [0-9a-f]{40}", said)
    assert "its credential is refused now: fatal: Authentication failed" in said
    assert re.search(r"box stopped after \d+ s; cost (\$\d|not settled yet)", said)
    assert re.search(
        r"user  admin\n +password  kept in .+/admin_password\n +token  kept in .+/admin_token\n", said
    )
    assert "Traceback" not in said


def test_nothing_of_it_is_left_running(clone: Clone, once: tuple[int, str]) -> None:
    assert clone.processes() == {}


def test_nothing_is_written_outside_the_checkout(clone: Clone, once: tuple[int, str]) -> None:
    assert list((clone.folder / "home").iterdir()) == []
    tracked = subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone.checkout, capture_output=True, text=True, check=True
    )
    assert tracked.stdout == ""


def test_whatever_is_killed_the_run_ends_with_its_whole_output(clone: Clone, up: Up) -> None:
    api = clone.api(up)
    with running_box(api) as box:
        run = started_run(api, box)

        for part in PARTS:
            before = clone.pids()[part]
            kill(before)
            eventually(lambda part=part, before=before: clone.pids().get(part, before) != before)  # type: ignore[misc]

        ending = ended(api, run)
        assert (ending["state"], ending["exit_status"]) == ("completed", 0)
        assert output(api, run) == WHOLE_OUTPUT
        assert set(clone.pids()) == set(PARTS)


def test_no_secret_is_where_others_can_read_it(clone: Clone, up: Up) -> None:
    api = clone.api(up)
    with running_box(api) as box:
        started_run(api, box, "echo hello")
        secrets = {
            path.read_text().strip() for path in (clone.state / "private").iterdir() if path.is_file()
        } - {""}
        assert len(secrets) >= 5

        told = [*command_lines().values(), up.said(), *map(_text, (clone.state / "logs").iterdir())]
        open_to_others = [
            path for path in clone.folder.rglob("*") if path.is_file() and path.stat().st_mode & stat.S_IROTH
        ]

        assert not [secret for secret in secrets for text in told if secret in text]
        assert not [path for path in open_to_others if any(secret in _text(path) for secret in secrets)]
        assert not [path for path in (clone.state / "private").iterdir() if path.stat().st_mode & 0o077]


@needs("curl")
def test_the_curl_lines_work_as_they_are_shown(clone: Clone, up: Up) -> None:
    lines = [line.strip() for line in up.said().splitlines() if line.strip().startswith("curl ")]

    said = [
        subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
        for line in lines
    ]

    assert len(lines) == 3
    assert '"label":"mine"' in said[0]
    assert "Linux" in said[1]
    assert '"stop_reason":"user_requested"' in said[2]


def test_a_second_start_says_where_the_first_one_is(clone: Clone, up: Up) -> None:
    second = clone.starts()

    assert second.ends() == 0
    assert re.search(rf"Already running at http://\S+ \(process {up.process.pid};", second.said())
    assert up.process.poll() is None


def test_once_beside_a_running_one_uses_it(clone: Clone, up: Up) -> None:
    second = clone.starts("--once")

    assert second.ends() == 0, second.said()
    assert "the run completed, exit status 0" in second.said()
    assert up.process.poll() is None


def test_an_interrupted_start_ends_without_a_traceback(clone: Clone, once: tuple[int, str]) -> None:
    state = clone.folder / "interrupted"
    up = clone.starts("--once", env=clone.environment | {"STATE_DIR": str(state)})
    eventually(lambda: "Database, schedules" in up.said())

    status = up.interrupt()

    assert status == 130, up.said()
    assert "Traceback" not in up.said()
    assert up.said().endswith("Everything is stopped.\n")
    assert not [text for text in clone.processes().values() if str(state) in text]


def test_a_port_that_must_be_used_and_is_taken_ends_the_start(clone: Clone, up: Up) -> None:
    port = re.search(r"API: http://127.0.0.1:(\d+)/", up.said())
    assert port
    elsewhere = {"STATE_DIR": str(clone.folder / "elsewhere"), "WEB_PORT": port[1]}

    second = clone.starts("--once", env=clone.environment | elsewhere)

    assert second.ends() == 1
    assert second.said().splitlines()[-1].startswith(f"bin/up: Port {port[1]}")


def test_a_killed_start_is_taken_over_and_its_run_ends_well(clone: Clone, up: Up) -> None:
    with running_box(clone.api(up)) as box:
        run = started_run(clone.api(up), box)
        before = clone.pids()

        kill(up.process.pid)
        up.process.wait()
        second = clone.is_up("--no-demo")

        ending = ended(clone.api(second), run)
        assert (ending["state"], ending["exit_status"]) == ("completed", 0)
        assert output(clone.api(second), run) == WHOLE_OUTPUT
        assert not set(before.values()) & set(command_lines())
    assert second.interrupt() == 0
    assert clone.processes() == {}


def test_it_uses_a_database_and_a_provider_of_ones_own(clone: Clone, once: tuple[int, str]) -> None:
    with own_database() as database_url, LocalboxServer() as provider:
        own = clone.environment | {
            "DATABASE_URL": database_url,
            "SECRET_KEY": secrets.token_urlsafe(48),
            "STATE_DIR": str(clone.folder / "own"),
            "BOX_API_BASE_URL": provider.base_url,
            "BOX_API_KEY": provider.key,
        }
        good = clone.starts("--once", env=own)
        assert good.ends(START_SECONDS) == 0, good.said()
        assert not re.search("postgres |provider .*started", good.said())
        assert "step 5 of 5" in good.said()  # a box elsewhere cannot clone from here: a plain run

        refused = clone.starts("--once", env=own | {"BOX_API_KEY": "another"})
        assert refused.ends() == 1
        assert "not become ready: the box provider refuses BOX_API_KEY" in refused.said()

        nameless = clone.starts("--once", env={k: v for k, v in own.items() if k != "BOX_API_KEY"})
        assert nameless.ends() == 1
        assert "BOX_API_KEY is not: set both" in nameless.said().splitlines()[-1]


@contextmanager
def own_database() -> Iterator[str]:
    """A new database on the tests' server."""
    server, name = ensure_test_cluster(), f"own_{uuid.uuid4().hex}"
    with psycopg.connect(**server.parameters(), autocommit=True) as link:
        link.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield replace(server, dbname=name).url()
        finally:
            link.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")
