"""Handing a command's text to a shell, also where there is no bash."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from localbox.runtime import launching
from localbox.runtime.supervisor import processes, shell
from tests.waiting import eventually

from .rig import Rig, running

TEXTS = [
    "echo $0 $#", "exit 7", "exec echo hi; echo never", "set -e; false; echo never", "cat <<END\nto $0\nEND",
    "cat <<END\nno newline at the end\nEND\n", "cat", "", "  ", "# only a comment", "echo a\n\n\necho b\n",
    "trap 'echo bye' EXIT; exit 3", "kill -TERM $$", "printf '%s|' 'a\\tb  c'", "set -u; x=1; echo $x",
    "f() { echo \"<$1>\"; }; f '  q '", "echo é€", "x=`echo hi`; echo \"$x\"", "for i in 1 2\ndo echo $i\ndone",
    "env | grep OA_", "set | grep ^OA_", "false", "echo \"multi\nline\"", "echo 'a\\\\b'", "nosuchprogram 2>/dev/null",
]  # fmt: skip


def _through(program: str, text: str) -> tuple[int, bytes]:
    """Run the text as the supervisor does."""
    script = shell.script(text.encode())
    high = os.dup(script)

    def give() -> None:
        os.dup2(high, shell.SCRIPT_FD)
        os.closerange(shell.SCRIPT_FD + 1, 64)

    done = subprocess.run(
        shell.arguments(program), executable=program, stdin=subprocess.DEVNULL, capture_output=True,
        preexec_fn=give, close_fds=False, check=False,
    )  # fmt: skip
    os.close(script)
    os.close(high)
    return done.returncode, done.stdout


def _directly(program: str, text: str) -> tuple[int, bytes]:
    arguments = [os.path.basename(program), "-c", text]
    done = subprocess.run(
        arguments, executable=program, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "program", [path for path in ("/bin/bash", "/bin/sh", "/bin/dash") if os.path.exists(path)]
)
def test_it_makes_no_difference_to_an_argument(program: str) -> None:
    for text in TEXTS:
        assert (text, *_through(program, text)) == (text, *_directly(program, text))


@pytest.fixture
def without_bash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisors that find no bash on this machine."""
    program = launching._PROGRAM.replace(
        "main()", "from localbox.runtime.supervisor import shell; shell._SHELLS = (); main()"
    )
    monkeypatch.setattr(launching, "_PROGRAM", program)


def test_it_runs_commands_with_sh_where_there_is_no_bash(rig: Rig, without_bash: None) -> None:
    box = rig.up()

    assert box.output("echo $0 $SHELL; cat <<END\nfrom $0\nEND") == "sh /bin/sh\nfrom sh"
    assert box.run("exit 3").exit_code == 3
    assert box.wait(box.start("echo out; exit 4").process_id).exit_code == 4
    assert box.run("sleep 21.2151", seconds=0.3).signal == "SIGTERM"


def test_it_has_a_first_process_that_lasts_also_without_bash(bwrap_rig: Rig, without_bash: None) -> None:
    box = bwrap_rig.up()

    box.run("kill -TERM 1; kill -KILL 1; kill -KILL -1")
    for _ in range(3):
        box.run("(setsid sh -c 'sleep 0.01' &)")

    assert box.output("echo fine") == "fine"
    eventually(
        lambda: "Z" not in box.output("cat /proc/[0-9]*/stat 2>/dev/null | cut -d' ' -f3 | tr -d '\\n'")
    )


def test_it_ends_with_its_supervisor_also_without_bash(bwrap_rig: Rig, without_bash: None) -> None:
    box = bwrap_rig.up()
    box.run("(setsid sleep 21.2161 &)")

    os.kill(box.pid, signal.SIGKILL)

    eventually(lambda: not running("21.2161"))
    assert not processes.lives(box.pid)


def test_it_leaves_no_open_file_of_a_command(rig: Rig) -> None:
    box = rig.up()

    def files() -> int:
        return len(os.listdir(f"/proc/{box.pid}/fd"))

    def use() -> None:
        box.run("sleep 0.01 & echo x")
        box.wait(box.start("echo x").process_id)
        box.read("f")
        box.refusal(box.handle.run("true", cwd="nowhere", timeout_seconds=5))
        box.refusal(box.handle.read_file("none"))

    box.write("f", b"x")
    use()
    before = files()  # one that is just being closed may be among them
    for _ in range(15):
        use()

    eventually(lambda: files() <= before)
