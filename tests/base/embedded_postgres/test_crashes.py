"""Whatever is killed, and whatever is left lying around: the next start brings back every committed row."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from base.embedded_postgres import Cluster, State, Status, processes, server_account
from base.embedded_postgres.binaries import usable_by
from base.embedded_postgres.initialise import UNFINISHED_PREFIX
from base.embedded_postgres.postmaster import living
from base.embedded_postgres.server import environment, settings_of
from tests.waiting import eventually

from .conftest import ENDLESS, SMALL, connect, processes_of

LONG = 60  # seconds that no wait here should ever take


@pytest.fixture
def committed(cluster):
    """A running server, one committed row, and an open client with an uncommitted one."""
    cluster.start()
    client = connect(cluster)
    client.execute("drop table if exists facts; create table facts (number int)")
    client.execute("insert into facts values (1)")
    client.execute("begin")
    client.execute("insert into facts values (2)")
    yield cluster
    client.close()


def facts(cluster: Cluster) -> list[tuple[int]]:
    with connect(cluster) as link:
        return link.execute("select number from facts").fetchall()


def test_kill_of_the_server_with_an_open_client_loses_nothing_committed(committed):
    os.kill(committed.status().pid, signal.SIGKILL)
    assert committed.wait(LONG) == -signal.SIGKILL
    assert committed.status().state in {State.STALE, State.STARTING}

    committed.start()

    assert facts(committed) == [(1,)]


def test_kill_of_all_its_processes_loses_nothing_committed(committed):
    main, others = living(committed.layout)
    processes.send(main + others, signal.SIGKILL)
    committed.wait(LONG)

    committed.start()

    assert facts(committed) == [(1,)]


def test_kill_of_one_backend_is_recovered_by_the_server_itself(committed):
    with connect(committed) as witness, connect(committed) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        assert processes.wait_until(lambda: is_cut_off(witness), LONG)
    assert processes.wait_until(lambda: can_read(committed), LONG)

    assert committed.poll() is None
    assert facts(committed) == [(1,)]


def is_cut_off(link: psycopg.Connection) -> bool:
    """Whether the server ended this client too, as it does before it recovers: until then it takes new ones."""
    with suppress(psycopg.OperationalError):
        link.execute("select 1")
    return link.broken


def can_read(cluster: Cluster) -> bool:
    with suppress(psycopg.OperationalError):
        return facts(cluster) is not None
    return False


def test_an_orphan_that_is_too_busy_to_see_its_servers_death_is_ended(committed):
    busy = connect(committed)
    thread = threading.Thread(target=endless_query, args=(busy,))
    thread.start()
    assert processes.wait_until(lambda: is_active(committed, busy.info.backend_pid), LONG)
    os.kill(committed.status().pid, signal.SIGKILL)
    committed.wait(LONG)

    committed.start()

    thread.join(LONG)
    assert not processes.is_alive(busy.info.backend_pid)
    assert facts(committed) == [(1,)]


def endless_query(link: psycopg.Connection) -> None:
    """Loops in C without looking for signals other than the hard ones."""
    with suppress(psycopg.Error):
        link.execute(
            "do $$ begin loop begin loop perform 1; end loop; exception when query_canceled then null; end; end loop; end $$"
        )


def is_active(cluster: Cluster, pid: int) -> bool:
    with connect(cluster) as link:
        return link.execute("select state from pg_stat_activity where pid = %s", [pid]).fetchone() == (
            "active",
        )


def test_kill_of_the_supervising_process_ends_the_server_cleanly(folder, python):
    supervisor = python("print(cluster.start().pid, flush=True); time.sleep(600)", folder)
    pid = int(supervisor.stdout.readline())

    supervisor.kill()

    assert processes.wait_until(lambda: not processes.is_alive(pid), LONG)
    assert Cluster(folder).status().state is State.STOPPED
    assert "database system is shut down" in (folder / "postgres.log").read_text().splitlines()[-1]


def test_kill_of_a_detached_supervisor_ends_the_server_too(folder):
    status = Cluster(folder, settings=SMALL).start_detached()

    os.kill(status.supervisor, signal.SIGKILL)

    assert processes.wait_until(lambda: processes_of(folder) == [], LONG)
    assert Cluster(folder).status().state is State.STOPPED


def test_a_detached_supervisor_brings_a_killed_server_back(folder):
    cluster = Cluster(folder, settings=SMALL)
    before = cluster.start_detached()

    os.kill(before.pid, signal.SIGKILL)

    after = eventually(lambda: another_server(cluster, before.pid))
    assert after.supervisor == before.supervisor


def another_server(cluster: Cluster, pid: int) -> Status | None:
    status = cluster.status()  # one look: a second one may see it at another moment
    return status if status.is_running and status.pid != pid else None


def test_a_detached_supervisor_ends_when_its_folder_is_gone(folder):
    status = Cluster(folder, settings=SMALL).start_detached()
    folder.rename(folder.with_name("moved"))

    os.kill(status.pid, signal.SIGKILL)

    assert processes.wait_until(lambda: not processes.is_alive(status.supervisor), LONG)
    assert not folder.exists()
    folder.with_name("moved").rename(folder)


def test_a_server_without_a_supervisor_is_taken_over(cluster, folder, as_server):
    binaries, _ = usable_by(server_account(cluster.layout.data), cluster.binaries, folder)
    program = [binaries.program("postgres"), "-D", str(cluster.layout.data)]
    for name, value in settings_of(cluster.layout, 20, SMALL).items():
        program += ["-c", f"{name}={value}"]
    stray = as_server(program)
    assert processes.wait_until(lambda: cluster.status().is_running, LONG)

    status = cluster.start()

    assert stray.wait(LONG) == 0
    assert cluster.owned
    assert status.pid != stray.pid


@pytest.fixture
def as_server(cluster):
    """Start a program as the server's account, with no tie to anything."""
    started = []

    def start(program: list[str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(cluster.layout),
            cwd="/",
            **server_account(cluster.layout.data).popen_options(),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("state", ["alive", "zombie"])
def test_a_stale_pid_file_that_names_a_stranger_is_no_obstacle(cluster, folder, state):
    stranger = subprocess.Popen(["sleep", "600"])
    if state == "zombie":
        stranger.kill()
        assert processes.wait_until(lambda: not processes.is_alive(stranger.pid), LONG)
    pid_file = folder / "data" / "postmaster.pid"
    pid_file.write_text(
        f"{stranger.pid}\n{folder / 'data'}\n1700000000\n5432\n{folder / 'run'}\n\n 5432001 0\nready   \n"
    )
    os.chown(pid_file, *owner_of(folder / "data"))

    assert cluster.status().state is State.STALE
    assert cluster.start().is_running

    assert processes.is_alive(stranger.pid) == (state == "alive")
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("text", ["", "not a number\n", "4"])
def test_a_garbled_pid_file_is_no_obstacle(cluster, folder, text):
    pid_file = folder / "data" / "postmaster.pid"
    pid_file.write_text(text)
    os.chown(pid_file, *owner_of(folder / "data"))

    assert cluster.start().is_running


def owner_of(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid


def test_a_server_is_stopped_in_the_middle_of_its_recovery(committed, folder, endless_recovery, python):
    committed.stop()
    endless_recovery()
    slow = python(f"cluster.settings['restore_command'] = {ENDLESS!r}\ncluster.start_detached()", folder)
    assert processes.wait_until(lambda: committed.status().pid is not None, LONG)
    assert committed.status().state is State.STARTING

    Cluster(folder).stop()

    assert slow.wait(LONG) == 1
    assert processes_of(folder) == []
    (folder / "data" / "recovery.signal").unlink()
    committed.start()
    assert facts(committed) == [(1,)]


def test_an_interrupt_during_the_start_leaves_nothing_running(folder, endless_recovery, python):
    endless_recovery()
    starter = python(f"cluster.settings['restore_command'] = {ENDLESS!r}\ncluster.start()", folder)
    assert processes.wait_until(lambda: Cluster(folder).status().pid is not None, LONG)

    starter.send_signal(signal.SIGINT)

    assert "KeyboardInterrupt" in starter.communicate(timeout=LONG)[0]
    assert processes_of(folder) == []


def test_a_kill_while_the_database_is_made_leaves_nothing_half_made(bare_folder, python):
    maker = python("cluster.start()", bare_folder)
    assert processes.wait_until(lambda: any(bare_folder.glob(f"{UNFINISHED_PREFIX}*/PG_VERSION")), LONG)

    maker.kill()

    assert processes.wait_until(lambda: processes_of(bare_folder) == [], LONG)
    assert not (bare_folder / "data").exists()
    cluster = Cluster(bare_folder, settings=SMALL)
    assert cluster.start().is_running
    assert list(bare_folder.glob(f"{UNFINISHED_PREFIX}*")) == []
    cluster.close()
