"""A synchronous command: what it is given, what comes back, and when."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from localbox.runtime.interface import Limits
from tests.waiting import eventually

from .rig import Box, Rig, call, running

# (text, exit code, standard output), as `bash -c` gives them
LIKE_BASH_C = [
    ("echo $0 $#", 0, "bash 0\n"),
    ("exit 7", 7, ""),
    ("exec echo hi; echo never", 0, "hi\n"),
    ("set -e; false; echo never", 1, ""),
    ("cat <<END\nto $0\nEND", 0, "to bash\n"),
    ("cat", 0, ""),
    ("echo first\n)\necho never", 2, "first\n"),
    ("nosuchprogram", 127, ""),
    ("trap 'echo bye' EXIT; exit 3", 3, "bye\n"),
    ("echo $LINENO\necho $LINENO", 0, "1\n2\n"),
    ("return 3; echo after", 0, "after\n"),
    ("# a comment\necho x", 0, "x\n"),
    ("", 0, ""),
    ("printf '%s|' 'a\\tb  c' \"$(printf 'd\\n\\n')\"", 0, "a\\tb  c|d|"),
    ("echo é€ | wc -c", 0, "6\n"),
    ("kill -TERM $$", None, ""),
]


def test_it_runs_a_command_like_bash_c(box: Box) -> None:
    for text, code, output in LIKE_BASH_C:
        result = box.run(text)

        assert (text, result.exit_code, result.stdout.decode()) == (text, code, output)


def test_it_gives_code_streams_and_times(box: Box) -> None:
    before = time.time()

    result = box.run("printf out; printf err >&2; exit 3")

    assert (result.exit_code, result.signal) == (3, None)
    assert (result.stdout, result.stderr) == (b"out", b"err")
    assert (result.stdout_truncated, result.stderr_truncated) == (False, False)
    assert before <= result.started_at <= result.finished_at <= time.time()


def test_it_names_the_signal_that_ended_a_command(box: Box) -> None:
    result = box.run("kill -SEGV $$")

    assert (result.exit_code, result.signal, result.timed_out) == (None, "SIGSEGV", False)


def test_it_leaves_no_descriptor_or_variable_of_its_own(box: Box) -> None:
    assert box.output("ls /proc/self/fd | tr '\\n' ' '") == "0 1 2 3"  # 3 is the folder that ls reads
    assert box.output("env | grep -c OA_ || true") == "0"


def test_it_gives_every_command_a_plain_users_environment(rig: Rig) -> None:
    box = rig.up(env={"GREETING": "hello world", "LANG": "C"})

    names = "$USER $LOGNAME $LANG $GREETING $BOX_ID"
    assert box.output(f"echo {names}") == f"user user C hello world {box.spec.box_id}"
    assert box.output('case ":$PATH:" in *":$HOME/.local/bin:"*) echo yes;; esac') == "yes"
    assert (
        box.output('echo x > "$TMPDIR/f" && cat "$TMPDIR/f" && test "$PWD" = "$HOME" && umask') == "x\n0022"
    )


def test_it_never_runs_a_command_as_root(box: Box) -> None:
    assert box.output("id -u") != "0"
    assert (
        box.output("grep -E 'Cap(Eff|Prm|Inh|Amb)' /proc/self/status | grep -vc 0000000000000000 || true")
        == "0"
    )
    assert "1" in box.output("grep NoNewPrivs /proc/self/status")


def test_it_has_the_signals_of_a_fresh_process(box: Box) -> None:
    result = box.run("yes | head -n 1; echo ${PIPESTATUS[0]}; exec grep SigIgn /proc/self/status")

    assert result.stdout == b"y\n141\nSigIgn:\t0000000000000000\n"


def test_it_starts_in_the_folder_asked_for(box: Box) -> None:
    box.run("mkdir -p 'a b/c'; ln -s 'a b' link")

    result = box.run('pwd; basename "$PWD"', cwd="link/c")

    assert result.cwd == "/home/user/a b/c"
    assert result.stdout.decode().splitlines()[1] == "c"
    assert box.run("true").cwd == "/home/user"
    assert box.run("true", cwd="/tmp").cwd == "/tmp"


def test_it_refuses_a_folder_that_is_none_or_not_the_boxs(box: Box) -> None:
    box.run("touch file; ln -s /etc out")

    for cwd in ("nowhere", "file", "..", "/", "/etc", "/home/user/../../etc", "out", "a\0b", "\ud800"):
        assert box.refusal(box.handle.run("true", cwd=cwd, timeout_seconds=5)) == "invalid_cwd"
        assert box.refusal(box.handle.start_detached("true", cwd=cwd)) == "invalid_cwd"


def test_it_refuses_text_that_no_shell_can_be_given(box: Box) -> None:
    for command in ("echo a\0b", "echo \ud800"):
        assert box.refusal(box.handle.run(command, cwd=None, timeout_seconds=5)) == "invalid_command"
        assert box.refusal(box.handle.start_detached(command, cwd=None)) == "invalid_command"


def test_it_takes_a_command_larger_than_an_argument_may_be(box: Box) -> None:
    text = "x" * 3_000_000

    assert box.output(f"wc -c <<'END'\n{text}\nEND") == str(len(text) + 1)


def test_it_ends_the_tree_of_a_command_that_takes_too_long(box: Box) -> None:
    result = box.run("sleep 31.4151 & (sleep 31.4152; true) & sleep 31.4153", seconds=0.5)

    assert (result.timed_out, result.exit_code, result.signal) == (True, None, "SIGTERM")
    assert running("31.415") == []


def test_it_kills_what_does_not_heed_the_request_to_end(box: Box) -> None:
    result = box.run("trap '' TERM; echo begun; while :; do sleep 0.1; done", seconds=3)

    assert (result.timed_out, result.signal, result.stdout) == (True, "SIGKILL", b"begun\n")


def test_it_lets_a_command_tidy_up_before_it_is_killed(box: Box) -> None:
    result = box.run("trap 'echo tidy; exit 0' TERM; while :; do sleep 0.05; done", seconds=3)

    assert (result.timed_out, result.exit_code, result.stdout) == (True, None, b"tidy\n")


def test_it_leaves_other_commands_of_the_box_alone_on_a_timeout(box: Box) -> None:
    other = box.start("sleep 31.4161")
    box.run("(setsid sleep 31.4162 &)")

    box.run("sleep 31.4163", seconds=0.3)

    assert box.status(other.process_id).status == "running"
    eventually(lambda: running("31.4162"))
    assert running("31.4163") == []


def test_it_answers_although_a_background_child_holds_the_streams(box: Box) -> None:
    result = box.run("sleep 31.4171 & echo started")

    assert (result.exit_code, result.stdout, result.timed_out) == (0, b"started\n", False)
    eventually(lambda: running("31.4171"))


def test_it_lets_a_child_left_behind_go_on_writing(box: Box) -> None:
    box.run("(for i in $(seq 200); do echo line $i; sleep 0.005; done; echo survived > result) &")

    eventually(lambda: box.output("cat result 2>/dev/null || true") == "survived")


def test_it_keeps_the_beginning_of_a_long_output_and_says_so(rig: Rig) -> None:
    box = rig.up(limits=Limits(output_bytes=1000))

    result = box.run("seq 100000; seq 3 >&2")

    assert len(result.stdout) == 1000
    assert result.stdout.startswith(b"1\n2\n3\n")
    assert (result.stdout_truncated, result.stderr_truncated, result.stderr) == (True, False, b"1\n2\n3\n")


def test_it_does_not_call_an_output_of_just_the_ceiling_truncated(rig: Rig) -> None:
    box = rig.up(limits=Limits(output_bytes=1000))

    result = box.run("head -c 1000 /dev/zero; head -c 1001 /dev/zero >&2")

    assert (result.stdout_truncated, result.stderr_truncated) == (False, True)


def test_it_runs_many_commands_of_one_box_at_once(box: Box) -> None:
    async def both() -> list[bytes]:
        waits = [
            box.handle.run(
                f"until test -e go; do sleep 0.02; done; echo {number}", cwd=None, timeout_seconds=60
            )
            for number in range(30)
        ]
        goes = [box.handle.run("sleep 0.2; touch go; echo go", cwd=None, timeout_seconds=60)]
        return [result.stdout for result in await asyncio.gather(*waits, *goes)]

    assert call(both()) == [f"{number}\n".encode() for number in range(30)] + [b"go\n"]


def test_it_needs_no_thread_for_a_command_that_waits(box: Box) -> None:
    async def wait() -> int:
        waits = [
            asyncio.create_task(box.handle.run("sleep 31.4181", cwd=None, timeout_seconds=600))
            for _ in range(20)
        ]
        while len(running("sleep\00031.4181")) < 20:
            await asyncio.sleep(0.02)
        threads = len(list(Path(f"/proc/{box.pid}/task").iterdir()))
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        return threads

    assert call(wait()) == 1
