"""What one box may use up, and that the others do not notice."""

from __future__ import annotations

import asyncio
import os

import pytest

from localbox.runtime.interface import Limits
from tests.waiting import eventually

from .rig import IS_ROOT, Box, Rig, call, memory_kib, running

BOMB = "bomb() { bomb & bomb & exec sleep 71.7151; }; bomb"
MIB = 1 << 20


def _slack(rig: Rig) -> int:
    """Plain boxes of an ordinary user share the kernel's count with all that this user runs, other tests too."""
    return 0 if IS_ROOT or rig.runtime.name == "bwrap" else 150


def test_it_contains_a_fork_bomb(rig: Rig) -> None:
    box = rig.up(limits=Limits(processes=40))
    neighbour = rig.up()

    bomb = box.start(BOMB)
    eventually(lambda: b"Resource temporarily unavailable" in box.status(bomb.process_id).stderr)

    assert neighbour.output("seq 3 | tail -n 1") == "3"
    assert len(running("71.7151")) <= 40 + _slack(rig)
    box.stop()
    assert running("71.7151") == []


def test_it_still_takes_commands_in_a_box_at_its_limit(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up(limits=Limits(processes=20))
    crowd = box.start("for i in $(seq 40); do setsid sleep 71.7161 & done")
    eventually(lambda: b"Resource temporarily unavailable" in box.status(crowd.process_id).stderr)

    assert box.output("echo builtin") == "builtin"
    assert box.refusal(box.handle.read_file("none")) == "not_found"
    assert box.output("kill -KILL -1; echo") == ""


def test_it_limits_processes_and_not_what_others_have(rig: Rig) -> None:
    box, neighbour = rig.up(limits=Limits(processes=40)), rig.up(limits=Limits(processes=200))
    crowd = box.start("for i in $(seq 300); do sleep 71.7171 & done")
    eventually(lambda: b"Resource temporarily unavailable" in box.status(crowd.process_id).stderr)

    assert 5 <= len(running("71.7171")) <= 40 + _slack(rig)
    assert neighbour.output("seq 5 | wc -l") == "5"


def test_it_limits_the_memory_of_a_process(rig: Rig) -> None:
    box = rig.up(limits=Limits(memory_bytes=64 * MIB))

    result = box.run("head -c 200000000 /dev/zero | tail -c 200000000 | wc -c")

    assert b"200000000" not in result.stdout
    assert box.output("echo fine") == "fine"


def test_it_does_not_count_memory_that_is_only_reserved(rig: Rig) -> None:
    box = rig.up(limits=Limits(memory_bytes=64 * MIB))

    assert box.output("ulimit -v") == "unlimited"
    assert box.output("ulimit -d") == str(64 * 1024)


def test_it_limits_the_size_of_a_file(rig: Rig) -> None:
    box = rig.up(limits=Limits(file_bytes=4 * MIB))

    result = box.run("head -c 10000000 /dev/zero > big; echo $?")

    assert result.stdout == b"153\n"  # ended by SIGXFSZ
    assert box.output("stat -c %s big") == str(4 * MIB)


def test_it_limits_what_temporary_files_take(bwrap_rig: Rig) -> None:
    box, neighbour = bwrap_rig.up(limits=Limits(tmp_bytes=4 * MIB)), bwrap_rig.up()

    for place in ("/tmp", "/dev/shm"):
        full = box.run(f"for i in 1 2 3; do head -c 3000000 /dev/zero > {place}/$i || exit 9; done")
        assert (full.exit_code, b"No space left" in full.stderr) == (9, True)

    assert neighbour.output("head -c 5000000 /dev/zero > /tmp/x && stat -c %s /tmp/x") == "5000000"
    assert box.output("echo fine") == "fine"


def test_it_has_no_place_in_memory_without_a_size(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    writable = box.output(
        "for d in / /home /dev /run /var /etc /usr /proc /; do test -w $d && echo $d; done; true"
    )

    assert writable == ""
    assert "size=" not in box.output("mount | grep tmpfs | grep -v size= | grep -v ' (ro' || true")


def test_it_leaves_no_core_file_and_few_open_files(box: Box) -> None:
    assert box.output("ulimit -c") == "0"
    assert int(box.output("ulimit -n")) <= 4096


def test_it_cannot_lift_its_limits(rig: Rig) -> None:
    box = rig.up(limits=Limits(processes=50, file_bytes=MIB))

    for option in ("-u 4000", "-f unlimited", "-d unlimited"):
        assert box.run(f"ulimit -H {option}").exit_code != 0


def test_it_is_nicer_than_the_provider_and_the_first_to_go(box: Box) -> None:
    assert int(box.output("nice")) == min(19, os.nice(0) + 5)
    assert box.output("cat /proc/self/oom_score_adj") == "500"


def test_it_answers_others_while_boxes_are_busy(rig: Rig) -> None:
    busy, calm = [rig.up() for _ in range(2)], rig.up()

    async def both() -> list[int | None]:
        floods = [box.handle.run("timeout 3 yes", cwd=None, timeout_seconds=60) for box in busy]
        asked = [calm.handle.run("exit 4", cwd=None, timeout_seconds=60) for _ in range(10)]
        return [result.exit_code for result in await asyncio.gather(*asked, *floods)]

    assert call(both()) == [4] * 10 + [124] * 2
    assert all(memory_kib(box.pid, "VmHWM") < 40_000 for box in busy)


def test_it_is_a_small_supervisor(box: Box) -> None:
    for _ in range(20):
        box.run("seq 1000")

    assert memory_kib(box.pid, "RssAnon") < 9_000


def test_it_refuses_a_box_without_network_where_it_cannot_cut_it_off(plain_rig: Rig) -> None:
    with pytest.raises(Exception, match="network") as caught:
        plain_rig.up(network=False)

    assert caught.value.code == "start_failed"


def test_it_cuts_a_box_off_the_network_if_asked(bwrap_rig: Rig) -> None:
    cut, joined = bwrap_rig.up(network=False), bwrap_rig.up()

    assert cut.output("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo"
    assert cut.output("readlink /proc/self/ns/net") != joined.output("readlink /proc/self/ns/net")


def test_it_needs_a_uid_that_is_not_roots(rig: Rig) -> None:
    spec = rig.spec()

    with pytest.raises(Exception, match="root") as caught:
        rig.up(type(spec)(spec.box_id, spec.root, 0))

    assert caught.value.code == "start_failed"
    assert IS_ROOT or spec.uid is None
