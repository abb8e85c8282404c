"""The supervisor keeps real processes running, and ends all of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.waiting import eventually

from .conftest import PATIENCE_SECONDS, House, is_running

pytestmark = pytest.mark.system
FAMILY = """sh -c 'trap "" TERM; sleep 1000 & echo child $!; wait'"""  # a leader with a child in its group


def test_it_restarts_what_was_killed(house: House) -> None:
    house.starts("web: sleep 1000\n")
    first = house.pid("web")

    os.kill(first, signal.SIGKILL)

    second = house.pid("web", other_than=first)
    assert is_running(second)
    assert "was killed by SIGKILL; is started again in 0.1 s" in house.said()


def test_it_restarts_what_ended_with_status_0(house: House) -> None:
    house.starts("web: sh -c 'echo began; sleep 0.2'\n")

    eventually(lambda: house.log("web").count("began") >= 3)

    assert "ended with status 0; is started again" in house.said()


def test_it_kills_the_whole_group_before_a_restart(house: House) -> None:
    house.starts(f"scheduler: {FAMILY}\n")
    leader = house.pid("scheduler")
    eventually(lambda: "child " in house.log("scheduler"))
    orphan = int(house.log("scheduler").split()[1])

    os.kill(leader, signal.SIGKILL)

    house.pid("scheduler", other_than=leader)
    assert not is_running(orphan)


def test_it_backs_off_from_a_process_that_cannot_run(house: House) -> None:
    house.starts("worker: sh -c 'echo ERROR no luck; exit 3'\n")

    eventually(lambda: "again in 0.8 s" in house.said())

    assert [line.rpartition("again in ")[2] for line in house.said().splitlines() if "again in" in line][
        :4
    ] == [
        "0.1 s",
        "0.2 s",
        "0.4 s",
        "0.8 s",
    ]


def test_one_that_cannot_run_does_not_hold_up_the_others(house: House) -> None:
    house.starts("web: sleep 1000\nworker: /nowhere/program\n")
    eventually(lambda: house.said().count("worker │ ended with status 127") >= 2)

    web = house.pid("web")
    os.kill(web, signal.SIGKILL)

    assert is_running(house.pid("web", other_than=web))


def test_it_stops_the_provider_after_its_users_and_exits_0(house: House) -> None:
    order = house.folder / "order"
    slow = f"""sh -c 'trap "sleep 0.3; echo web >> {order}; exit" TERM; echo armed; while :; do sleep 0.05; done'"""
    quick = (
        f"""sh -c 'trap "echo provider >> {order}; exit" TERM; echo armed; while :; do sleep 0.05; done'"""
    )
    supervisor = house.starts(f"web: {slow}\nprovider: {quick}\n")
    eventually(lambda: "armed" in house.log("web") and "armed" in house.log("provider"))

    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(PATIENCE_SECONDS) == 0
    assert order.read_text().split() == ["web", "provider"]
    assert not any(house.groups().values())


def test_it_kills_what_does_not_end_in_time(house: House) -> None:
    supervisor = house.starts(f"worker: {FAMILY}\n", "0.5")
    eventually(lambda: "child " in house.log("worker"))
    child = int(house.log("worker").split()[1])

    supervisor.send_signal(signal.SIGINT)

    assert supervisor.wait(PATIENCE_SECONDS) == 0
    assert "did not end in time, is killed" in house.said()
    assert not is_running(child)


def test_a_second_request_to_stop_does_not_wait(house: House) -> None:
    supervisor = house.starts(f"worker: {FAMILY}\n", "1000")
    eventually(lambda: "child " in house.log("worker"))

    supervisor.send_signal(signal.SIGINT)
    eventually(lambda: "stopping worker" in house.said())
    supervisor.send_signal(signal.SIGINT)

    assert supervisor.wait(PATIENCE_SECONDS) == 0


def test_a_killed_supervisor_leaves_nothing_that_the_next_one_does_not_end(house: House) -> None:
    first = house.starts(f"scheduler: {FAMILY}\nweb: sleep 1000\n")
    old = house.pid("scheduler"), house.pid("web")
    eventually(lambda: "child " in house.log("scheduler"))
    orphan = int(house.log("scheduler").split()[1])

    first.kill()
    first.wait()
    house.starts(f"scheduler: {FAMILY}\nweb: sleep 1000\n")

    assert is_running(house.pid("scheduler", other_than=old[0]))
    assert not any(map(is_running, [*old, orphan]))
    assert "was left running and has been ended" in house.said()


def test_a_killed_supervisor_kills_the_provider_without_asking_it(house: House) -> None:
    asked = house.folder / "asked"
    first = house.starts(
        f"""provider: sh -c 'trap "touch {asked}; exit" TERM; echo armed; while :; do sleep 0.05; done'\n"""
    )
    provider = house.pid("provider")
    eventually(lambda: "armed" in house.log("provider"))

    first.kill()
    first.wait()

    eventually(lambda: not is_running(provider))
    assert not asked.exists()


def test_it_buries_orphans_of_its_processes(house: House) -> None:
    house.starts("worker: sh -c '(sleep 0.1 & echo child $!) ; sleep 1000'\n")
    eventually(lambda: "child " in house.log("worker"))
    orphan = int(house.log("worker").split()[1])

    eventually(lambda: not Path(f"/proc/{orphan}").exists())


def test_output_goes_to_a_private_log_and_with_a_prefix_to_the_terminal(house: House) -> None:
    house.starts("web: sh -c 'echo hello; printf unfinished; sleep 0.2'\n")

    eventually(lambda: "unfinished" in house.log("web"))

    assert house.log("web").splitlines()[:2] == ["hello", "unfinished"]
    assert "      web │ hello" in house.said()
    assert (house.folder / "logs" / "web.log").stat().st_mode & 0o777 == 0o600
    assert (house.folder / "logs" / "supervisor.log").stat().st_mode & 0o777 == 0o600
