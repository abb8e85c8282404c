"""A command that writes over what its keeper and its shell have left."""

from __future__ import annotations

import os
from pathlib import Path

from tests.runs.scripts.conftest import ScriptBox

ENDLESS = 1 << 40


def endless(file: Path, begin: bytes = b"") -> None:
    """A file that takes no room and that nobody reads to its end."""
    file.write_bytes(begin)
    os.truncate(file, ENDLESS)


def test_a_pid_file_without_an_end_is_not_read_to_its_end(box: ScriptBox) -> None:
    box.dispatch("sleep 600")
    endless(box.folder / "pid")

    assert box.poll().alive
    assert box.probe().present
    assert box.kill(grace_seconds=0).cancelled
    assert box.processes() == []


def test_an_end_without_an_end_is_not_believed(box: ScriptBox) -> None:
    box.dispatch("sleep 600")
    endless(box.folder / "exit-code")

    reply = box.poll()
    assert (reply.alive, reply.exit) == (True, None)
    assert box.kill(grace_seconds=0).cancelled


def test_what_follows_the_second_line_does_not_count(box: ScriptBox) -> None:
    box.ends("exit 7")
    endless(box.folder / "exit-code", b"7\n0 - -\n")

    reply = box.poll()
    assert reply.exit is not None
    assert reply.exit.status == 7


def test_no_name_is_looked_up_for_what_such_a_file_holds(box: ScriptBox) -> None:
    box.ends("exit 7")
    (box.folder / "exit-code").write_text("7\n*/ * /*/*/*/*\n")

    reply = box.poll()
    assert reply.exit is not None
    assert (reply.exit.status, reply.exit.signal) == (7, None)
