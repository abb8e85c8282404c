"""kill -9 of the provider disturbs no box, and the next provider takes them over."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from localbox.runtime.interface import SupervisorRecord
from localbox.runtime.supervisor import processes
from tests.waiting import eventually

from .rig import Box, Rig, call, running

ROOT = Path(__file__).resolve().parents[3]

PROVIDER = """
import asyncio, json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from localbox.runtime import choose
from localbox.runtime.interface import BoxSpec
values = json.loads(sys.argv[3])

async def main(runtime):
    spec = BoxSpec(values["box_id"], pathlib.Path(values["root"]), values["uid"])
    box = await runtime.start(spec)
    await box.start_detached("echo begun; until test -e go; do sleep 0.02; done; echo ended; exit 7", cwd=None)
    await box.start_detached("until test -e go; do sleep 0.02; done; exec sleep 61.6151", cwd=None)
    record = box.record
    print(json.dumps([record.pid, record.start_time, record.socket]), flush=True)
    await box.run("touch asked; until test -e go; do sleep 0.02; done; touch finished; exec sleep 61.6161", cwd=None, timeout_seconds=600)

asyncio.run(main(choose(sys.argv[2])))
"""


FIRST_PROCESS = """
import asyncio, ctypes, json, os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process, as to the first one of a container
from localbox.runtime import choose
from localbox.runtime.interface import BoxSpec
values = json.loads(sys.argv[3])

async def main(runtime):
    spec = BoxSpec(values["box_id"], pathlib.Path(values["root"]), values["uid"])
    box = await runtime.start(spec)
    await box.start_detached("exec sleep 61.6231", cwd=None)
    os.kill(box.record.pid, signal.SIGKILL)
    await runtime.sweep([spec])

asyncio.run(main(choose(sys.argv[2])))
"""


def _killed_provider(rig: Rig) -> tuple[Box, SupervisorRecord]:
    """A box whose provider was killed while it waited for a command of it."""
    spec = rig.spec()
    values = json.dumps({"box_id": spec.box_id, "root": str(spec.root), "uid": spec.uid})
    arguments = [sys.executable, "-c", PROVIDER, str(ROOT), rig.runtime.name, values]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as provider:
        line = provider.stdout.readline()
        assert line, provider.stderr.read()
        eventually(lambda: (spec.root / "home" / "asked").exists())
        provider.send_signal(signal.SIGKILL)
        provider.wait()
    record = SupervisorRecord(*json.loads(line))
    handle = call(rig.runtime.adopt(spec, record))
    return Box(rig.runtime, spec, handle), record


def test_it_is_adopted_with_its_running_commands(rig: Rig) -> None:
    box, record = _killed_provider(rig)

    assert box.handle.record == record
    assert box.status(1).status == "running"
    assert box.output("cat .openagents/commands/1/stdout.log") == "begun"


def test_it_lets_the_command_that_was_waited_for_go_on(rig: Rig) -> None:
    box, _ = _killed_provider(rig)

    box.run("touch go")

    eventually(lambda: box.run("test -e finished").exit_code == 0)
    eventually(lambda: running("61.6161"))


def test_it_keeps_the_exit_code_of_a_command_that_ended_meanwhile(rig: Rig) -> None:
    spec_box, record = _killed_provider(rig)
    (spec_box.home / "go").touch()
    eventually(lambda: running("61.6151"))

    box = Box(rig.runtime, spec_box.spec, call(rig.runtime.adopt(spec_box.spec, record)))

    ended = box.wait(1)
    assert (ended.status, ended.exit_code, ended.stdout) == ("exited", 7, b"begun\nended\n")
    assert box.status(2).status == "running"


def test_it_is_stopped_by_the_next_provider(rig: Rig) -> None:
    box, _ = _killed_provider(rig)

    box.stop()

    assert running("61.61") == []
    assert not processes.lives(box.pid)


def test_it_is_not_adopted_once_its_supervisor_is_gone(rig: Rig) -> None:
    box = rig.up()
    os.kill(box.pid, signal.SIGKILL)
    eventually(lambda: not processes.lives(box.pid))

    assert call(rig.runtime.adopt(box.spec, box.handle.record)) is None


def test_it_is_not_adopted_by_a_pid_that_is_another_process_now(rig: Rig) -> None:
    box = rig.up()

    record = dataclasses.replace(box.handle.record, start_time=box.handle.record.start_time - 1)

    assert call(rig.runtime.adopt(box.spec, record)) is None


def test_it_is_not_adopted_as_another_box(rig: Rig) -> None:
    box, other = rig.up(), rig.up()

    assert call(rig.runtime.adopt(other.spec, box.handle.record)) is None


def test_it_talks_only_to_the_process_on_record(rig: Rig) -> None:
    box, other = rig.up(), rig.up()

    record = dataclasses.replace(box.handle.record, socket=other.handle.record.socket)

    assert call(rig.runtime.adopt(box.spec, record)) is None


def test_it_replaces_a_supervisor_that_nobody_knows_of(rig: Rig) -> None:
    forgotten = rig.up()
    forgotten.start("exec sleep 61.6171")

    again = rig.up(forgotten.spec)

    assert not processes.lives(forgotten.pid)
    assert running("61.6171") == []
    assert again.output("echo fine") == "fine"


def test_it_sweeps_boxes_that_should_not_be_up(rig: Rig) -> None:
    left, kept = rig.up(), rig.up()
    left.start("exec sleep 61.6181")
    kept.start("exec sleep 61.6191")
    eventually(lambda: running("61.6191"))

    ended = call(rig.runtime.sweep([left.spec, rig.spec()]))

    assert ended >= 2
    assert running("61.6181") == []
    assert running("61.6191")
    assert not processes.lives(left.pid)
    assert call(rig.runtime.sweep([left.spec])) == 0


def test_it_sweeps_what_a_dead_supervisor_left(rig: Rig) -> None:
    box = rig.up()
    box.run("(setsid sleep 61.6201 &)")
    os.kill(box.pid, signal.SIGKILL)

    call(rig.runtime.sweep([box.spec]))

    assert running("61.6201") == []


def test_it_sweeps_orphans_that_it_has_to_collect_itself(rig: Rig) -> None:
    spec = rig.spec()
    values = json.dumps({"box_id": spec.box_id, "root": str(spec.root), "uid": spec.uid})

    subprocess.run([sys.executable, "-c", FIRST_PROCESS, str(ROOT), rig.runtime.name, values], check=True)

    assert running("61.6231") == []


def test_it_sweeps_a_supervisor_whose_record_the_box_took_away(plain_rig: Rig) -> None:
    box = plain_rig.up()
    box.run('mv "$HOME/../run" "$HOME/../elsewhere"; (setsid sleep 61.6211 &)')

    call(plain_rig.runtime.sweep([box.spec]))

    assert running("61.6211") == []
    assert not processes.lives(box.pid)


def test_it_has_a_socket_however_long_the_path_is(rig: Rig) -> None:
    spec = dataclasses.replace(rig.spec(), root=rig.state / "boxes" / ("long" * 60) / "box")
    spec.root.parent.mkdir(mode=0o711)

    box = rig.up(spec)

    assert len(box.handle.record.socket) > 200
    assert box.output("echo fine") == "fine"
    box.stop()
