"""A stop ends everything, whatever it did to escape."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from localbox.runtime.supervisor import processes
from tests.waiting import eventually

from .rig import IS_ROOT, Box, Rig, arguments_of, call, running

ESCAPES = {
    "background": "sleep 51.5151 &",
    "nohup": "nohup sleep 51.5151 > /dev/null 2>&1 &",
    "own session": "setsid sleep 51.5151 &",
    "double fork": "(setsid sh -c 'setsid sleep 51.5151 & setsid sleep 51.5151 &' &)",
    "cleared environment": "(setsid env -i sleep 51.5151 &)",
    "deaf": "(trap '' TERM HUP INT; setsid sleep 51.5151 &)",
    "stopped": "setsid sleep 51.5151 & sleep 0.1; kill -STOP $!",
    "moved away": "(cd /; setsid sleep 51.5151 < /dev/null > /dev/null 2>&1 3>&- &)",
    "forking on": "(setsid sh -c 'while :; do (sleep 51.5151 & sleep 0.05; kill $!); done' > /dev/null 2>&1 &)",
}


def test_it_ends_every_process(rig: Rig) -> None:
    box = rig.up()
    for number, escape in enumerate(ESCAPES.values()):
        mine = f"51.515{number}"
        box.run(escape.replace("51.5151", mine))
        eventually(lambda mine=mine: running(mine))
    box.start("exec sleep 51.5151")

    box.stop()

    assert running("51.515") == []
    assert _left_of(box) == []


def test_it_ends_only_its_own_box(rig: Rig) -> None:
    box, neighbour = rig.up(), rig.up()
    kept = neighbour.start("exec sleep 51.5161")

    box.stop()

    assert neighbour.status(kept.process_id).status == "running"
    assert neighbour.output("echo fine") == "fine"


def test_it_answers_a_command_that_runs_when_the_box_stops(rig: Rig) -> None:
    box = rig.up()

    async def both() -> object:
        waiting = asyncio.create_task(box.handle.run("exec sleep 51.5171", cwd=None, timeout_seconds=100))
        while not running("51.5171"):
            await asyncio.sleep(0.02)
        await box.handle.stop()
        return await waiting

    assert call(both()).signal == "SIGKILL"


def test_it_can_be_told_twice(rig: Rig) -> None:
    box = rig.up()

    box.stop()
    box.stop()

    assert box.refusal(box.handle.run("true", cwd=None, timeout_seconds=5)) == "box_direct_failed"


def test_it_ends_a_box_whose_supervisor_hangs(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localbox.runtime.ending._ASK_SECONDS", 0.3)
    box = rig.up()
    box.run("(setsid env -i sleep 51.5181 &)")
    os.kill(box.pid, signal.SIGSTOP)

    box.stop()

    assert running("51.5181") == []
    assert _left_of(box) == []


def test_it_ends_a_box_when_its_supervisor_is_asked_to_end(rig: Rig) -> None:
    box = rig.up()
    box.run("(setsid env -i sleep 51.5191 &)")

    os.kill(box.pid, signal.SIGTERM)

    eventually(lambda: not processes.lives(box.pid))
    assert running("51.5191") == []


def test_it_keeps_the_files_over_a_stop(rig: Rig) -> None:
    box = rig.up()
    box.run("echo kept > file")
    box.stop()

    assert rig.up(box.spec).output("cat file") == "kept"


def test_it_starts_each_time_with_the_variables_of_that_time(rig: Rig) -> None:
    box = rig.up(env={"NAME": "first"})
    box.stop()
    changed = type(box.spec)(box.spec.box_id, box.spec.root, box.spec.uid, {"NAME": "second"})

    assert rig.up(changed).output("echo $NAME") == "second"


def test_it_survives_a_box_that_kills_all_it_sees(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    box.run("kill -TERM 1; kill -KILL 1; kill -KILL -1; pkill -9 sleep; true")

    assert box.output("echo fine; tr '\\0' ' ' < /proc/1/cmdline | cut -c1-9") == "fine\n/bin/bash"


def test_it_survives_a_box_under_root_that_kills_all_it_may(plain_rig: Rig) -> None:
    if not IS_ROOT:
        pytest.skip("an ordinary user's plain box may kill what this user runs, the tests too")
    box = plain_rig.up()

    box.run("kill -KILL -1")

    assert box.output("echo fine") == "fine"


def test_it_dies_with_its_supervisor(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()
    box.run("(setsid env -i sleep 51.5201 &)")

    os.kill(box.pid, signal.SIGKILL)

    eventually(lambda: not running("51.5201"))


def test_it_notices_that_the_namespace_was_ended(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()
    box.start("exec sleep 51.5211")
    first = next(
        pid
        for pid in processes.descendants(box.pid, processes.table())
        if b"echo >&4" in arguments_of(pid) and b"bwrap" not in arguments_of(pid).split(b"\0")[0]
    )

    os.kill(first, signal.SIGKILL)

    eventually(lambda: not processes.lives(box.pid))
    assert bwrap_rig.up(box.spec).status(1).signal == "SIGKILL"


def test_it_deletes_a_box_whatever_is_in_its_home(rig: Rig) -> None:
    box = rig.up()
    box.run(
        "mkdir -p cache/deep; touch cache/deep/f; chmod 500 cache/deep; chmod 0 cache; mkfifo p; ln -s /etc e"
    )
    box.run("name=$(printf %0200d 7); for i in $(seq 40); do mkdir $name; cd $name; done")
    box.stop()

    call(rig.runtime.remove(box.spec))

    assert not box.spec.root.exists()
    assert Path("/etc/passwd").exists()


def test_it_deletes_a_box_that_is_not_there(rig: Rig) -> None:
    spec = rig.spec()

    call(rig.runtime.remove(spec))

    assert not spec.root.exists()


def _left_of(box: Box) -> list[int]:
    """Processes of the box's uid, or with its mark, or its supervisor."""
    uid, mark = box.spec.uid, f"BOX_ID={box.spec.box_id}".encode()
    mine = processes.of_uid(uid) if uid is not None else []
    marked = [pid for pid in processes.pids() if mark in processes.environment(pid) and processes.lives(pid)]
    return [*mine, *marked, *([box.pid] if processes.is_alive(box.pid, box.handle.record.start_time) else [])]
