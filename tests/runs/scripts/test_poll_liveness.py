"""Whether a poll finds a run alive: by its pid file where that can be believed, else by its mark."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from runs.scripts import GitCredential
from tests.runs.scripts.conftest import ScriptBox, end_everything
from tests.waiting import eventually


def test_a_run_is_alive_until_its_shell_ended(box: ScriptBox) -> None:
    box.dispatch("sleep 30")

    reply = box.poll()

    assert (reply.present, reply.alive, reply.exit) == (True, True, None)


def test_a_run_whose_processes_vanished_is_not_alive(box: ScriptBox) -> None:
    box.dispatch("kill -9 $PPID $$")

    eventually(lambda: not box.processes())
    reply = box.poll(wait_seconds=5)

    assert (reply.present, reply.alive, reply.exit) == (True, False, None)


def test_the_credential_of_a_run_that_left_no_end_is_removed(box: ScriptBox) -> None:
    credential = GitCredential("https://forge.example", "secret-of-this-run")
    box.dispatch("kill -9 $PPID; echo killed; sleep 30", credential=credential)
    eventually(lambda: box.poll().log.size)
    assert {"forge-credential", "gitconfig"} <= set(box.files())

    os.kill(int((box.folder / "pid").read_text().split()[0]), signal.SIGKILL)
    eventually(lambda: not box.poll().alive)

    assert not {"forge-credential", "gitconfig"} & set(box.files())


def test_a_command_cannot_forbid_itself(box: ScriptBox) -> None:
    box.dispatch("touch $OPENAGENTS_RUN_DIRECTORY/never; echo made; sleep 30")
    eventually(lambda: box.poll().log.size)

    assert box.poll().alive
    assert box.probe().present


def test_a_run_whose_witness_was_killed_is_alive(box: ScriptBox) -> None:
    box.dispatch("kill -9 $PPID; echo killed; exec sleep 30")

    eventually(lambda: box.poll().log.size)

    assert box.poll().alive


def test_a_run_without_a_pid_file_is_found_by_its_mark(box: ScriptBox) -> None:
    box.dispatch("sleep 30")
    (box.folder / "pid").unlink()
    assert box.poll().alive

    end_everything(box)

    assert box.poll().alive is False


@pytest.mark.parametrize(
    "content", ["", "0\n", "1\n", "-1\n", "nonsense\n", "99999999999999999999\n", "1 2 3\n"]
)
def test_a_damaged_pid_file_is_not_believed(dash_box: ScriptBox, content: str) -> None:
    dash_box.dispatch("sleep 30")
    (dash_box.folder / "pid").write_text(content)

    assert dash_box.poll().alive is (content != "99999999999999999999\n")
    assert dash_box.kill(grace_seconds=0).cancelled


def test_a_stranger_with_the_same_pid_is_not_the_run(box: ScriptBox) -> None:
    box.ends("true")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        _claim_pid(box, stranger.pid, started="12345")
        (box.folder / "exit-code").unlink()

        assert box.poll().alive is False
        assert box.kill(grace_seconds=0).cancelled
        assert stranger.poll() is None
        stranger.kill()


def test_a_pid_of_another_boot_is_not_the_run(box: ScriptBox) -> None:
    box.ends("true")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        started = Path(f"/proc/{stranger.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
        _claim_pid(box, stranger.pid, started=started, boot="another-boot")
        (box.folder / "exit-code").unlink()

        assert box.poll().alive is False
        assert box.kill(grace_seconds=0).cancelled
        assert stranger.poll() is None
        stranger.kill()


def _claim_pid(box: ScriptBox, pid: int, *, started: str, boot: str | None = None) -> None:
    boot = boot or Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (box.folder / "pid").write_text(f"{pid}\n{started} - - {boot}\n")
