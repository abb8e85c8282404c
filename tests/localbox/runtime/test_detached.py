"""A detached command: it outlives its request, its logs can be read from the box, its end is kept."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from localbox.runtime.interface import Limits
from localbox.runtime.supervisor import processes
from localbox.runtime.supervisor.records import Records
from tests.waiting import eventually

from .rig import Box, Rig, call, memory_kib, running


def test_it_starts_a_command_and_tells_where_its_logs_are(box: Box) -> None:
    started = box.start("echo out; echo err >&2; exec sleep 41.4151")

    assert started.process_id == 1
    assert started.cwd == "/home/user"
    eventually(lambda: box.output(f"cat {started.log_path} {started.err_path}") == "out\nerr")
    assert ".openagents/commands/1/" in started.log_path


def test_it_gives_a_pid_that_later_commands_can_use(box: Box) -> None:
    started = box.start("exec sleep 41.4161")

    assert box.run(f"kill -0 {started.pid}").exit_code == 0
    assert box.run(f"kill -TERM -- -{started.pid}").exit_code == 0  # it leads its own process group
    assert (box.wait(1).status, box.status(1).signal) == ("exited", "SIGTERM")
    assert box.run(f"kill -0 {started.pid}").exit_code == 1


def test_it_goes_from_running_to_exited_with_code_and_output(box: Box) -> None:
    box.start("echo one; until test -e go; do sleep 0.02; done; echo two; echo bad >&2; exit 9")
    eventually(lambda: box.status(1).stdout == b"one\n")
    running_status = box.status(1)
    box.run("touch go")

    ended = box.wait(1)

    assert (running_status.status, running_status.exit_code, running_status.finished_at) == (
        "running",
        None,
        None,
    )
    assert (ended.status, ended.exit_code, ended.signal) == ("exited", 9, None)
    assert (ended.stdout, ended.stderr) == (b"one\ntwo\n", b"bad\n")
    assert ended.finished_at is not None
    assert ended.started_at <= ended.finished_at


def test_it_has_the_whole_output_as_soon_as_it_says_exited(box: Box) -> None:
    for number in range(1, 21):
        box.start("seq 5000; seq 10 >&2")

        status = box.wait(number)

        assert status.stdout.endswith(b"4999\n5000\n")
        assert len(status.stdout) == 23893
        assert len(status.stderr) == 21


def test_it_gives_exactly_the_last_bytes_asked_for(box: Box) -> None:
    box.start("printf 0123456789; printf 0123456789 >&2")
    box.wait(1)

    for size, tail, cut in ((4, b"6789", True), (10, b"0123456789", False), (11, b"0123456789", False)):
        status = box.status(1, tail_bytes=size)

        assert status.stdout == status.stderr == tail
        assert status.stdout_truncated == status.stderr_truncated == cut


def test_it_counts_upwards_and_never_gives_a_number_twice(rig: Rig) -> None:
    box = rig.up()
    numbers = [box.start("true").process_id for _ in range(3)]
    assert box.refusal(box.handle.start_detached("true", cwd="nowhere")) == "invalid_cwd"
    box.stop()

    again = rig.up(box.spec)

    assert numbers == [1, 2, 3]
    assert again.start("true").process_id == 5
    assert again.refusal(again.handle.detached_status(4, tail_bytes=1)) == "not_found"
    assert again.status(2).exit_code == 0


def test_it_does_not_know_a_number_that_it_never_gave(box: Box) -> None:
    box.start("true")

    for number in (0, 2, -1, 2147483000):
        assert box.refusal(box.handle.detached_status(number, tail_bytes=1)) == "not_found"


def test_it_keeps_the_text_of_the_command(box: Box) -> None:
    text = "echo 'a  b' \"é\"\necho $$ # end"
    box.start(text)

    assert box.wait(1).command == text


def test_it_says_killed_after_the_box_was_stopped(rig: Rig) -> None:
    box = rig.up()
    box.start("exec sleep 41.4171")
    box.stop()

    status = rig.up(box.spec).status(1)

    assert (status.status, status.exit_code, status.signal) == ("exited", None, "SIGKILL")


def test_it_says_lost_only_if_the_supervisor_itself_died(rig: Rig) -> None:
    box = rig.up()
    box.start("echo before; exec sleep 41.4181")
    box.start("exit 4")
    box.wait(2)
    eventually(lambda: box.status(1).stdout == b"before\n")
    os.kill(box.pid, signal.SIGKILL)

    again = rig.up(box.spec)

    assert (again.status(1).status, again.status(1).stdout) == ("lost", b"before\n")
    assert (again.status(2).status, again.status(2).exit_code) == ("exited", 4)
    assert running("41.4181") == []


def test_it_goes_on_when_its_log_is_full(rig: Rig) -> None:
    box = rig.up(limits=Limits(log_bytes=100_000))

    box.start("head -c 300000 /dev/zero; echo still here >&2; exit 6")
    status = box.wait(1)

    assert (status.exit_code, status.stderr) == (6, b"still here\n")
    assert box.output(f"stat -c %s {status.log_path}") == "100000"
    assert (status.stdout_truncated, status.stderr_truncated) == (True, False)
    assert len(status.stdout) == 100_000


def test_it_takes_a_gigabyte_of_output_with_flat_memory(rig: Rig) -> None:
    box = rig.up(limits=Limits(log_bytes=1_000_000))
    neighbour = rig.up()

    box.start("head -c 1073741824 /dev/zero; exit 2")
    result = box.run("head -c 1073741824 /dev/zero; exit 3")

    assert (result.exit_code, len(result.stdout), result.stdout_truncated) == (3, 1 << 20, True)
    assert box.wait(1).exit_code == 2
    assert memory_kib(box.pid, "VmHWM") < 40_000
    assert neighbour.output("echo fine") == "fine"


def test_it_survives_a_box_that_meddles_with_its_logs(box: Box) -> None:
    started = box.start("while test ! -e go; do echo line; sleep 0.02; done; exit 5")
    eventually(lambda: box.status(1).stdout)

    box.run(f"rm {started.err_path}; rm {started.log_path}; ln -s /etc/passwd {started.log_path}; touch go")

    status = box.wait(1)
    assert (status.exit_code, status.stdout, status.stderr) == (5, b"", b"")


def test_it_reports_a_box_that_has_no_room_for_logs(box: Box) -> None:
    box.run("mkdir -p .openagents; touch .openagents/commands")

    assert box.refusal(box.handle.start_detached("true", cwd=None)) == "box_direct_failed"
    assert box.output("echo fine") == "fine"


DISPATCH = """set -eu
umask 077
mkdir -p .openagents/box-runs
mkdir .openagents/box-runs/r1 || { echo OPENAGENTS_RUN_EXISTS; exit 73; }
cd .openagents/box-runs/r1
echo 'Zm9yIGkgaW4gMSAyIDM7IGRvIGVjaG8gbGluZSAkaTsgZG9uZTsgdW50aWwgdGVzdCAtZSBnbzsgZG8gc2xlZXAgMC4wNTsgZG9uZTsgZXhpdCA1' | base64 -d > script.sh
: > output.log
setsid sh -c 'sh script.sh; code=$?; echo $code > exit-code; exit $code' < /dev/null > output.log 2>&1 &
echo $! > pid
cat pid
"""


def test_it_carries_a_run_that_a_synchronous_command_detached(box: Box) -> None:
    pid = box.output(DISPATCH).splitlines()[-1]
    assert box.run(f"kill -0 {pid}").exit_code == 0
    assert box.run(DISPATCH).exit_code == 73
    box.run("touch .openagents/box-runs/r1/go")

    eventually(lambda: box.run("test -e .openagents/box-runs/r1/exit-code").exit_code == 0)

    poll = "cd .openagents/box-runs/r1; wc -c < output.log; tail -c +8 output.log | base64; cat exit-code"
    assert box.output(poll).split() == ["21", "bGluZSAyCmxpbmUgMwo=", "5"]
    eventually(lambda: box.run(f"kill -0 {pid}").exit_code == 1)


def test_it_tells_an_end_that_it_could_not_write_down(tmp_path: Path) -> None:
    records = Records(str(tmp_path / "records"))
    number = records.next_id()
    (tmp_path / "records" / f"{number}.json.new").mkdir()

    records.save_end(number, {"exit_code": 3})

    assert records.load(number) == {"exit_code": 3}


def test_it_leaves_no_zombies(box: Box) -> None:
    for _ in range(5):
        box.run("for i in 1 2 3 4; do (setsid sh -c 'sleep 0.01' &) ; done")
    box.start("(sleep 0.01 &); exit 0")
    box.wait(1)

    eventually(lambda: not _zombies_of(box))


def _zombies_of(box: Box) -> list[int]:
    table = processes.table()
    below = {box.pid}
    for _ in range(10):
        below |= {process.pid for process in table.values() if process.parent in below}
    return [pid for pid in below if not table[pid].alive]


def test_it_can_be_asked_by_many_at_once(box: Box) -> None:
    box.start("echo x; exec sleep 41.4191")
    eventually(lambda: box.status(1).stdout)

    async def ask() -> set[bytes]:
        asked = [box.handle.detached_status(1, tail_bytes=10) for _ in range(50)]
        return {status.stdout for status in await asyncio.gather(*asked)}

    assert call(ask()) == {b"x\n"}
