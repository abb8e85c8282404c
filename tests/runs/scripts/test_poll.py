"""What a poll tells: the end, liveness and the next bytes, consistent with each other."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from runs.replies import parse_poll
from runs.scripts import poll_script
from tests.runs.scripts.conftest import ScriptBox, link_tools
from tests.waiting import eventually

ENDS = {
    "set -e; false": 1,
    "exec false": 1,
    "exit 7": 7,
    "trap '' EXIT; exit 9": 9,
    "trap 'exit 11' EXIT; exit 3": 11,
    "exec 3>&1; exit 4": 4,
    "sleep 1000 & exit 0": 0,
    "bash -c 'exec 3>&1; sleep 900 &'; exit 5": 5,
    "nosuchcommand": 127,
    "( exit 6 )": 6,
    "kill 0": 143,
    "trap 'kill 0' EXIT; sleep 100 & exit 2": None,
    "exit 137": 137,
    "exit 255": 255,
    "fi": 2,
}


@pytest.mark.parametrize("command", ENDS)
def test_every_way_to_end_is_recorded(box: ScriptBox, command: str) -> None:
    reply, _ = box.ends(command)

    assert reply.exit
    assert reply.exit.status == ENDS[command] or ENDS[command] is None
    assert reply.exit.signal is None or "kill" in command


@pytest.mark.parametrize(
    ("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("ABRT", 6), ("HUP", 1)]
)
def test_death_by_a_signal_is_told_apart_from_its_exit_code(box: ScriptBox, name: str, number: int) -> None:
    reply, _ = box.ends(f"kill -{name} $$; sleep 60")

    assert reply.exit
    assert (reply.exit.status, reply.exit.signal) == (128 + number, number)


def test_death_by_a_closed_pipe_is_just_its_status(box: ScriptBox) -> None:
    """Shells keep quiet about it."""
    reply, _ = box.ends("kill -PIPE $$; sleep 60")

    assert reply.exit
    assert (reply.exit.status, reply.exit.signal) == (141, None)


def test_death_by_an_interrupt_is_just_its_status(dash_box: ScriptBox) -> None:
    """What busybox's setsid starts ignores interrupts."""
    reply, _ = dash_box.ends("kill -INT $$; sleep 60")

    assert reply.exit
    assert (reply.exit.status, reply.exit.signal) == (130, None)


def test_a_command_that_kills_its_whole_group_does_not_kill_the_witness(box: ScriptBox) -> None:
    reply, output = box.ends("echo before; kill -9 0; echo after")

    assert reply.exit
    assert (reply.exit.status, output) == (137, b"before\n")


def test_lack_of_memory_is_hinted_at(dash_box: ScriptBox) -> None:
    """In a memory control group of its own, so that the kernel really ends a process for lack of memory."""
    group = Path(f"/sys/fs/cgroup/memory/openagents-test-{os.getpid()}")
    try:
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(24 * 1024 * 1024))
        (group / "memory.swappiness").write_text("0")
    except OSError:
        pytest.skip("memory control groups cannot be made here")
    try:
        dash_box.before = lambda: _join(group)
        assert dash_box.dispatch("tail /dev/zero").pid
        dash_box.before = None  # a poll has the box's memory, and not what the run left of the group's
        reply, _ = dash_box.wait_for_end()
        assert reply.exit
        assert (reply.exit.status, reply.exit.memory) == (137, True)
    finally:
        eventually(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def _join(group: Path) -> None:
    (group / "cgroup.procs").write_text("0")


def test_a_kill_for_another_reason_is_no_hint(dash_box: ScriptBox) -> None:
    reply, _ = dash_box.ends("kill -9 $$")

    assert reply.exit
    assert not reply.exit.memory


def test_the_exit_never_comes_before_the_output_is_complete(box: ScriptBox) -> None:
    box.dispatch("head -c 5000000 /dev/zero | tr '\\0' x; exit 3")

    output = b""
    while True:
        reply = box.poll(len(output), max_bytes=1_000_000)
        output += reply.log.data
        if reply.is_drained:
            break

    assert output == b"x" * 5_000_000
    assert reply.exit
    assert reply.exit.status == 3


def test_an_end_with_output_still_to_fetch_is_not_drained(dash_box: ScriptBox) -> None:
    dash_box.ends("printf 0123456789")

    reply = dash_box.poll(0, max_bytes=4)

    assert (reply.log.data, reply.log.size, reply.log.next_offset, reply.is_drained) == (
        b"0123",
        10,
        4,
        False,
    )


def test_what_a_background_child_writes_later_does_not_keep_the_run_open(dash_box: ScriptBox) -> None:
    dash_box.dispatch("printf end; (while :; do echo more; sleep 0.01; done) & exit 0")
    eventually(lambda: dash_box.poll().log.size > 20 and dash_box.poll().exit)

    reply = dash_box.poll(0, max_bytes=3)

    assert reply.exit
    assert (reply.exit.log_size or 0) >= 3
    assert dash_box.poll(reply.exit.log_size or 0, max_bytes=1).is_drained


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 65_536])
def test_every_byte_comes_once_whatever_the_step(box: ScriptBox, limit: int) -> None:
    expected = "日本🙂é\n\1\r\t\33".encode() + b"\xff\xfe"
    box.ends("printf '日本🙂é\\n\\1\\r\\t\\33\\377\\376'")

    output = b""
    while not (reply := box.poll(len(output), max_bytes=limit)).is_drained:
        assert len(reply.log.data) == limit
        output += reply.log.data

    assert output + reply.log.data == expected


@pytest.mark.parametrize("offset", [65_535, 65_536, 65_537, 131_071, 131_072, 199_999])
def test_a_piece_across_blocks_is_exact(box: ScriptBox, offset: int) -> None:
    content = b"".join(b"%07d\n" % number for number in range(25_000))
    box.ends("true")
    (box.folder / "output.log").write_bytes(content)

    assert box.poll(offset, max_bytes=70_000).log.data == content[offset : offset + 70_000]


def test_a_piece_of_a_long_log_costs_no_more_than_one_of_a_short_log(box: ScriptBox) -> None:
    box.ends("true")
    with (box.folder / "output.log").open("wb") as log:
        log.truncate(
            60_000_000_000
        )  # sparse: reading it through would take far more than two seconds of processor time
        log.seek(59_999_999_990)
        log.write(b"0123456789")

    box.before = lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
    reply = box.poll(59_999_999_992, max_bytes=100)

    assert (reply.log.data, reply.log.size) == (b"23456789", 60_000_000_000)


def test_an_offset_beyond_the_end_brings_nothing(box: ScriptBox) -> None:
    box.ends("printf hello")

    reply = box.poll(100)

    assert (reply.log.data, reply.log.size, reply.log.next_offset) == (b"", 5, 100)


IN_PLACE_OF_THE_LOG = {
    "pipe": 'mkfifo "$log"',
    "link to a pipe": 'mkfifo "$log.pipe"; ln -s "$log.pipe" "$log"',
    "link to a device": 'ln -s /dev/zero "$log"',
    "link to nowhere": 'ln -s nowhere "$log"',
    "folder": 'mkdir "$log"',
    "nothing": "true",
}


@pytest.mark.parametrize("what", IN_PLACE_OF_THE_LOG)
def test_what_is_no_log_any_more_is_not_read(box: ScriptBox, what: str) -> None:
    replaced = f'log="$OPENAGENTS_RUN_DIRECTORY/output.log"; rm "$log"; {IN_PLACE_OF_THE_LOG[what]}; exit 4'

    reply, output = box.ends(replaced)

    assert reply.exit
    assert (reply.exit.status, reply.log.size, output) == (4, 0, b"")
    assert box.kill(grace_seconds=0).cancelled


def test_a_log_that_was_moved_is_read_through_its_link(box: ScriptBox) -> None:
    reply, output = box.ends(
        'log="$OPENAGENTS_RUN_DIRECTORY/output.log"; mv "$log" "$HOME/x"; ln -s "$HOME/x" "$log"; echo hello'
    )

    assert (reply.log.size, output) == (6, b"hello\n")


def test_a_missing_directory_is_absent_and_stays_missing(box: ScriptBox) -> None:
    assert not box.poll().present
    assert not box.folder.exists()


def test_a_forbidden_run_is_absent(box: ScriptBox) -> None:
    box.probe()

    assert not box.poll().present


class TestWaiting:
    def test_it_returns_with_the_end(self, box: ScriptBox) -> None:
        box.dispatch("sleep 0.3; exit 5")

        reply = box.poll(wait_seconds=50)

        assert reply.exit
        assert reply.exit.status == 5

    def test_it_returns_with_new_output(self, box: ScriptBox) -> None:
        box.dispatch("sleep 0.3; echo news; sleep 60")

        assert box.poll(wait_seconds=50).log.data == b"news\n"

    def test_it_returns_when_the_run_vanished(self, box: ScriptBox) -> None:
        box.dispatch("sleep 0.3; kill -9 $PPID $$")

        reply = box.poll(wait_seconds=50)

        assert (reply.alive, reply.exit) == (False, None)

    def test_it_ends_after_its_time(self, box: ScriptBox) -> None:
        box.dispatch("sleep 60")

        reply = box.poll(wait_seconds=1)

        assert (reply.alive, reply.log.size) == (True, 0)

    def test_it_waits_without_fractions_of_a_second(self, dash_box: ScriptBox, tmp_path: Path) -> None:
        dash_box.dispatch("sleep 0.5; echo news; sleep 60")
        dash_box.path = link_tools(tmp_path / "tools", *POLL_TOOLS)
        coarse = tmp_path / "tools" / "sleep"
        coarse.write_text('#!/bin/sh\ncase $1 in *.*) exit 1 ;; esac\nexec /bin/sleep "$1"\n')
        coarse.chmod(0o755)

        assert dash_box.poll(wait_seconds=50).log.data == b"news\n"

    def test_without_sleep_it_does_not_spin(self, dash_box: ScriptBox, tmp_path: Path) -> None:
        dash_box.dispatch("sleep 60")
        dash_box.path = link_tools(tmp_path / "tools", *POLL_TOOLS)

        assert dash_box.poll(wait_seconds=50).alive


POLL_TOOLS = ("ls", "dd", "head", "base64")


@pytest.mark.parametrize("tool", POLL_TOOLS)
def test_a_missing_tool_is_named(dash_box: ScriptBox, tool: str, tmp_path: Path) -> None:
    dash_box.ends("echo hello")
    dash_box.path = link_tools(tmp_path / "tools", *(set(POLL_TOOLS) - {tool}))

    done = dash_box.run(poll_script(dash_box.run_directory, offset=0, max_bytes=10))

    assert (done.returncode, done.stdout) == (69, f"OA_ERROR=missing_tool {tool}\n".encode())
    with pytest.raises(Exception, match=f"missing_tool:{tool}"):
        parse_poll(done.stdout.decode())


@pytest.mark.parametrize("numbers", [{"offset": -1}, {"max_bytes": 0}, {"wait_seconds": -1}])
def test_impossible_numbers_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        poll_script("/a", **({"offset": 0, "max_bytes": 1} | numbers))


def test_a_full_disk_does_not_swallow_the_exit_status(box: ScriptBox) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=1777", "none", box.home], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting needs root")
    try:
        reply, output = box.ends('echo begin; head -c 9000000 /dev/zero > "$HOME/filler"; echo lost; exit 6')
        assert reply.exit
        assert reply.exit.status == 6
        assert output.startswith(b"begin\n")
        assert box.kill().cancelled
    finally:
        subprocess.run(["umount", "-l", box.home], check=True)


def test_a_log_at_its_size_limit_ends_by_the_signal(dash_box: ScriptBox) -> None:
    dash_box.before = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    reply, output = dash_box.ends("exec head -c 900000 /dev/zero")

    assert reply.exit
    assert (len(output), reply.exit.signal) == (100_000, 25)
