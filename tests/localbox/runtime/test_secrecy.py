"""What other users of the host can learn of a command: nothing."""

from __future__ import annotations

import os
import stat

from localbox.runtime.supervisor import processes
from tests.waiting import eventually

from .rig import Rig, arguments_of, running

SECRET = f"oa-secret-{os.getpid():08x}"
"""One of this process: another may run the same test beside it."""


def test_it_shows_no_command_and_no_variable_in_the_process_list(rig: Rig) -> None:
    box = rig.up(env={"TOKEN": SECRET})
    box.start(f"echo {SECRET}; exec sleep 91.9151")
    box.start(f"echo {SECRET} > /dev/null; sleep 91.9161; true")
    eventually(lambda: running("91.9151") and running("91.9161"))

    shown = [pid for pid in processes.pids() if SECRET.encode() in arguments_of(pid)]

    assert shown == []
    assert box.output("echo $TOKEN") == SECRET


def test_it_gives_the_variables_to_the_commands_alone(rig: Rig) -> None:
    box = rig.up(env={"TOKEN": SECRET})
    entry = f"TOKEN={SECRET}".encode()
    box.start("exec sleep 91.9171")
    eventually(lambda: running("91.9171"))

    having = [pid for pid in processes.pids() if entry in processes.environment(pid)]

    assert having == running("91.9171")
    assert entry not in processes.environment(box.pid)


def test_it_keeps_records_of_commands_to_itself(rig: Rig) -> None:
    box = rig.up()
    box.start(f"echo {SECRET} > /dev/null")
    box.wait(1)

    holding = [
        path for path in box.spec.root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]

    assert [path.parent for path in holding] == [box.spec.root / "run" / "commands"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)


def test_it_writes_no_secret_to_its_log(rig: Rig) -> None:
    box = rig.up(env={"TOKEN": SECRET})
    box.run(f"echo {SECRET}; exit 1")
    box.refusal(box.handle.run(SECRET, cwd=SECRET, timeout_seconds=5))
    box.refusal(box.handle.read_file(f"{SECRET}/x"))

    logs = list((box.spec.root / "run").glob("*.log"))

    assert logs
    assert all(SECRET not in path.read_text() for path in logs)


def test_it_leaves_no_copy_of_a_command_in_the_box(rig: Rig) -> None:
    box = rig.up()
    box.run(f"echo {SECRET} > /dev/null")

    assert box.output("ls -A") == ""
    assert box.output('ls -A "$TMPDIR"') == ""
