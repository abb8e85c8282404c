"""Starting, using and stopping a server. Run as the account of the session, and by test_ordinary_user.py as another."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from base.embedded_postgres import Cluster, EmbeddedPostgresError, State, database_settings, explain
from base.embedded_postgres.layout import Layout

from .conftest import SMALL, connect, processes_of


def answer(cluster: Cluster, query: str) -> tuple[Any, ...] | None:
    with connect(cluster) as link:
        return link.execute(query).fetchone()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_first_start_makes_a_durable_database_that_listens_on_a_closed_socket_only(bare_folder):
    cluster = Cluster(bare_folder)

    status = cluster.start()
    cluster.ensure_database()

    assert (status.state, cluster.owned, cluster.poll()) == (State.RUNNING, True, None)
    with connect(cluster) as link:
        shown = {name: link.execute(f"show {name}").fetchone()[0] for name in EXPECTED}
    assert shown == EXPECTED
    assert [mode(path) for path in (bare_folder, status.data, status.socket.parent, status.socket)] == [
        0o700
    ] * 4
    cluster.close()


EXPECTED = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "data_checksums": "on",
    "server_encoding": "UTF8",
    "TimeZone": "UTC",
    "idle_in_transaction_session_timeout": "1min",
}


def test_a_second_start_uses_the_first_ones_server(cluster, folder):
    first = cluster.start()
    second = Cluster(folder)

    assert second.start().pid == first.pid
    assert (second.owned, second.poll()) == (False, None)
    second.close()
    assert answer(cluster, "select 1") == (1,)


def test_a_user_of_the_server_takes_it_over_when_its_supervisor_ends(cluster, folder):
    cluster.start()
    other = Cluster(folder, settings=SMALL)
    other.start()

    cluster.close()

    assert other.poll() is not None
    assert other.start().is_running
    assert other.owned
    other.close()


def test_a_stopped_server_is_found_stopped_and_keeps_its_data(cluster):
    cluster.start()
    with connect(cluster) as link:
        link.execute("drop table if exists kept; create table kept as select 7 as number")

    cluster.stop()

    assert (cluster.status().state, cluster.owned, cluster.poll()) == (State.STOPPED, False, -1)
    cluster.start()
    assert answer(cluster, "select number from kept") == (7,)


def test_stopping_what_does_not_run_is_fine(cluster, tmp_path):
    cluster.stop()
    Cluster(tmp_path / "never-made").stop()

    assert Cluster(tmp_path / "never-made").status().state is State.STOPPED


def test_a_detached_server_outlives_its_starter_and_is_stopped_from_anywhere(folder, python):
    starter = python("print(cluster.start_detached().pid)", folder)
    pid = int(starter.communicate()[0])

    status = Cluster(folder).status()

    assert (status.state, status.pid, status.detached) == (State.RUNNING, pid, True)
    Cluster(folder).stop()
    assert (Cluster(folder).status().state, processes_of(folder)) == (State.STOPPED, [])


def test_a_detached_start_of_a_running_server_changes_nothing(cluster, folder):
    first = cluster.start()

    second = Cluster(folder).start_detached()

    assert (second.pid, second.supervisor, second.detached) == (first.pid, os.getpid(), False)


def test_a_detached_start_that_fails_says_why(folder):
    cluster = Cluster(folder, settings={"shared_buffers": "much"})

    with pytest.raises(EmbeddedPostgresError, match="shared_buffers") as caught:
        cluster.start_detached()

    assert caught.value.code == "start_failed"


def test_two_starters_at_once_get_one_server(bare_folder, python):
    starters = [python("print(cluster.start_detached().pid)", bare_folder) for _ in range(2)]

    pids = {starter.communicate()[0] for starter in starters}

    assert len(pids) == 1
    assert Cluster(bare_folder).status().pid == int(pids.pop())


def test_a_database_is_made_once(cluster):
    cluster.start()

    connections = [cluster.ensure_database("second"), cluster.ensure_database("second")]

    assert connections[0] == connections[1]
    with psycopg.connect(**connections[0].parameters()) as link:
        assert link.execute("select current_database()").fetchone() == ("second",)


def test_django_finds_the_server_without_touching_anything(tmp_path):
    entry = database_settings(tmp_path / "state")

    assert (entry["ENGINE"], entry["NAME"], entry["USER"]) == (
        "django.db.backends.postgresql",
        "openagents_boxes",
        "app",
    )
    assert entry["HOST"] == str(Layout.at(tmp_path / "state" / "postgres").run)
    assert not (tmp_path / "state").exists()


def test_psql_reaches_the_server(cluster):
    cluster.start()

    done = subprocess.run(cluster.psql_argv("-Atc", "select 6*7"), capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_a_folder_may_have_any_name(folder):
    unusual = folder.with_name("a 'b\" %c")
    folder.rename(unusual)
    cluster = Cluster(unusual, settings=SMALL)

    cluster.start()

    assert answer(cluster, "select 1") == (1,)
    assert cluster.layout.run.parent == unusual
    cluster.close()
    unusual.rename(folder)


@pytest.mark.parametrize("name", ["d" * 110, "a, b"])
def test_a_folder_that_cannot_hold_a_socket_gets_a_short_one_for_it(folder, name):
    folder.rename(folder.with_name(name))
    cluster = Cluster(folder.with_name(name), settings=SMALL)

    cluster.start()

    assert answer(cluster, "select 1") == (1,)
    assert folder.parent not in cluster.layout.run.parents
    assert mode(cluster.layout.run) == 0o700
    cluster.close()
    cluster.layout.run.rmdir()
    folder.with_name(name).rename(folder)


def test_the_servers_processes_know_nothing_of_our_environment(cluster, monkeypatch):
    monkeypatch.setenv("BOX_API_KEY", "oa-secret-word")

    cluster.start()

    with connect(cluster) as link:
        link.execute("create temp table environment (line text); copy environment from program 'env'")
        lines = [line for (line,) in link.execute("select line from environment")]
    assert "TZ=UTC" in lines
    assert not [line for line in lines if "oa-secret-word" in line]


def test_a_shutdown_that_was_asked_for_is_told_from_a_crash(cluster):
    os.kill(cluster.start().pid, signal.SIGINT)
    assert cluster.wait(60) == 0

    os.kill(cluster.start().pid, signal.SIGKILL)
    assert cluster.wait(60) == -signal.SIGKILL


def test_an_absent_server_is_explained_in_one_sentence(cluster):
    with pytest.raises(psycopg.OperationalError) as caught:
        connect(cluster)

    assert (
        explain(caught.value)
        == "PostgreSQL is not running; start it with `bin/up` or `manage.py embedded_postgres start`."
    )
    assert (
        explain(
            psycopg.OperationalError('connection to server at "db", port 5432 failed: Connection refused')
        )
        is None
    )
