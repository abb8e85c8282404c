"""A kill ends everything of a run, or says what is left; an end that was there before it wins."""

from __future__ import annotations

import os
import resource
import uuid
from pathlib import Path

import pytest

from runs.replies import parse_dispatch, parse_kill
from runs.scripts import GitCredential, dispatch_script, kill_script
from tests.runs.scripts.conftest import ScriptBox, hide_proc, link_tools, read_if_there
from tests.waiting import eventually

STUBBORN = "sh -c 'trap \"\" TERM; echo ready; sleep 600 & setsid sleep 600 & nohup sleep 600 & wait'"


def test_it_ends_a_run_at_the_first_request(box: ScriptBox) -> None:
    box.dispatch("sleep 600")

    reply = box.kill()

    assert (reply.cancelled, reply.remaining, reply.exit) == (True, (), None)
    assert not box.processes()


def test_nothing_of_a_stubborn_run_remains(box: ScriptBox) -> None:
    box.dispatch(STUBBORN)
    eventually(lambda: box.poll().log.size)

    reply = box.kill(grace_seconds=1)

    assert reply.cancelled
    assert not box.processes()


def test_a_child_that_shed_its_environment_is_found_by_the_log_it_writes_to(box: ScriptBox) -> None:
    child = _unmistakable_sleep()
    box.dispatch(f"env -i setsid {child} & echo ready; sleep 600")
    eventually(lambda: box.poll().log.size and _is_running(child))

    assert box.kill(grace_seconds=1).cancelled
    assert not _is_running(child)


def test_a_child_that_shed_environment_and_log_is_found_in_the_runs_session(box: ScriptBox) -> None:
    child = _unmistakable_sleep()
    box.dispatch(f"env -i {child} >/dev/null 2>&1 & echo ready; sleep 600")
    eventually(lambda: box.poll().log.size and _is_running(child))

    assert box.kill(grace_seconds=1).cancelled
    assert not _is_running(child)


def _unmistakable_sleep() -> str:
    return f"sleep {10_000 + uuid.uuid4().int % 1_000_000}"


def _is_running(command: str) -> bool:
    wanted = command.replace(" ", "\0").encode() + b"\0"
    return any(wanted == read_if_there(entry) for entry in Path("/proc").glob("[0-9]*/cmdline"))


def test_a_polite_run_may_clean_up(box: ScriptBox) -> None:
    box.dispatch("trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    eventually(lambda: box.poll().log.size)

    reply = box.kill()

    assert reply.cancelled
    assert reply.log.data.startswith(b"ready\n")
    assert reply.log.data.endswith(b"cleaned\n")
    assert reply.exit is None  # it ended because of the kill, so it is no end of its own


def test_an_exit_that_is_already_there_is_told(box: ScriptBox) -> None:
    box.ends("echo done; exit 3")

    reply = box.kill()

    assert reply.exit
    assert (reply.cancelled, reply.exit.status, reply.log.data) == (True, 3, b"done\n")


def test_a_death_by_our_signal_never_looks_like_an_exit_later(box: ScriptBox) -> None:
    box.dispatch("sleep 600")
    box.kill()

    assert box.kill().exit is None
    assert box.poll().exit is None


SLEEPS = ["0", *(f"0.{number % 10}" for number in range(28)), "600"]
"""The first surely ends before its kill, and the last surely does not."""


def test_a_kill_races_with_an_end_and_both_tell_the_same(dash_box: ScriptBox) -> None:
    told = set()
    for number in range(len(SLEEPS)):
        dash_box.run_directory = f"$HOME/runs/{uuid.uuid4()}"
        dash_box.dispatch(f"sleep {SLEEPS[number]}; exit 4")
        if number == 0:
            dash_box.wait_for_end()

        reply = dash_box.kill()
        later = dash_box.poll()

        assert reply.cancelled
        assert reply.exit == later.exit
        assert reply.exit is None or reply.exit.status == 4
        told.add(reply.exit is None)

    assert told == {True, False}


def test_background_children_of_an_ended_run_go_too(box: ScriptBox) -> None:
    box.ends("sleep 600 & exit 0")
    assert box.processes()

    reply = box.kill(grace_seconds=1)

    assert reply.exit
    assert (reply.cancelled, reply.exit.status) == (True, 0)
    assert not box.processes()


def test_a_run_that_never_started_never_will(box: ScriptBox) -> None:
    assert box.kill().cancelled

    assert box.dispatch("touch ran").exists
    assert not box.probe().present
    assert box.kill().cancelled
    assert not (box.home / "ran").exists()


def test_a_kill_and_a_dispatch_at_the_same_moment_leave_nothing_alive(dash_box: ScriptBox) -> None:
    for number in range(30):
        dash_box.run_directory = f"$HOME/runs/{uuid.uuid4()}"
        scripts = [dispatch_script(dash_box.run_directory, "sleep 600", credential=None)]
        scripts.insert(number % 2, kill_script(dash_box.run_directory))
        answers = [
            process.communicate()[0].decode() for process in [dash_box.start(script) for script in scripts]
        ]

        kill = parse_kill(answers[number % 2])
        assert kill.cancelled, answers
        eventually(lambda: not dash_box.processes())  # a keeper that was shut out may just be leaving


def test_processes_are_found_although_the_directory_is_gone(box: ScriptBox) -> None:
    box.dispatch('rm -rf "$OPENAGENTS_RUN_DIRECTORY"; exec sleep 600')
    eventually(lambda: not box.folder.exists())

    assert box.kill(grace_seconds=1).cancelled
    assert not box.processes()


def test_it_finds_processes_with_a_grep_that_knows_no_nul(dash_box: ScriptBox, tmp_path: Path) -> None:
    dash_box.dispatch("setsid sleep 600 & sleep 600")
    plain = tmp_path / "tools"
    plain.mkdir()
    (plain / "grep").write_text('#!/bin/sh\ncase $1 in -*z*) exit 2 ;; esac\nexec /bin/grep "$@"\n')
    (plain / "grep").chmod(0o755)
    dash_box.path = f"{plain}:{dash_box.path}"

    assert dash_box.kill(grace_seconds=1).cancelled
    assert not dash_box.processes()


def test_it_removes_the_credential_in_every_case(box: ScriptBox) -> None:
    credential = GitCredential("https://forge.example", "secret-of-this-run")
    box.text(dispatch_script(box.run_directory, "sleep 600", credential=credential))
    assert {"forge-credential", "gitconfig"} <= set(box.files())

    box.kill()

    assert not {"forge-credential", "gitconfig"} & set(box.files())


def hand_over(box: ScriptBox, uid: int) -> None:
    for path in [box.home, *box.home.rglob("*")]:
        os.chown(path, uid, uid)
    for parent in list(box.home.parents)[:4]:
        parent.chmod(parent.stat().st_mode | 0o011)


ENOUGH = 40
FILL = f"i=0; while [ $i -lt {ENOUGH} ]; do sleep 600 & i=$((i+1)); done"
SHED = f"i=0; while [ $i -lt {ENOUGH - 5} ]; do setsid sleep 600 & i=$((i+1)); done"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (f"trap '' TERM; exec 2>/dev/null; echo ready; {FILL}; wait; sleep 600", None),
        (f"{SHED}; echo ready; exit 3", 3),
    ],
    ids=["no-process-is-left", "a-few-are-left"],
)
def test_a_run_that_filled_the_box_with_processes_is_ended(
    dash_box: ScriptBox, command: str, status: int | None
) -> None:
    if os.getuid():
        pytest.skip("a limit of processes does not count for the tests' own user")
    uid = (
        60_000 + os.getpid() % 5_000
    )  # their number is counted for each user, of this test's at once elsewhere too
    hand_over(dash_box, uid)
    dash_box.before = lambda: _confine(uid)
    assert dash_box.dispatch(command).pid
    eventually(lambda: len(dash_box.processes()) >= ENOUGH - 6)
    eventually(lambda: status is None or (dash_box.folder / "exit-code").exists())

    first = dash_box.text(kill_script(dash_box.run_directory, grace_seconds=1))
    eventually(lambda: not _has_processes(uid))
    reply = dash_box.kill()

    assert "OA_CANCELLED=1" not in first
    assert reply.cancelled
    assert (reply.exit.status if reply.exit else None) == status


def _confine(uid: int) -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (ENOUGH, ENOUGH))
    os.setuid(uid)


def _has_processes(uid: int) -> bool:
    """Zombies count here: they take room, too."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.stat().st_uid == uid or f"Uid:\t{uid}" in (entry / "status").read_text():
                return True
        except OSError:
            continue
    return False


def test_what_it_cannot_end_is_reported(dash_box: ScriptBox) -> None:
    """As an ordinary user against a process of another one, which carries the run's mark."""
    if os.getuid():
        pytest.skip("changing the user needs root")
    dash_box.dispatch("sleep 600")
    hand_over(dash_box, 61_234)
    dash_box.before = lambda: os.setuid(61_234)

    reply = dash_box.kill(grace_seconds=0)

    assert not reply.cancelled
    assert set(reply.remaining) & set(dash_box.processes())


def test_where_nothing_can_be_made_it_does_not_say_cancelled(box: ScriptBox) -> None:
    (box.home / ".openagents").write_text("a file in the way")

    done = box.run(kill_script(box.run_directory))

    assert (done.returncode, done.stdout) == (74, b"OA_ERROR=cannot_create_directory\n")


def test_a_process_that_multiplies_is_ended(dash_box: ScriptBox) -> None:
    dash_box.dispatch(
        "f() { trap '' TERM; sleep 0.2; f & }; for i in 1 2 3 4 5; do f & done; echo ready; wait; sleep 600"
    )
    eventually(lambda: dash_box.poll().log.size)

    assert dash_box.kill(grace_seconds=0).cancelled
    assert not dash_box.processes()


@pytest.mark.parametrize("tool", ["grep", "sed", "sort", "sleep", "rm"])
def test_a_missing_tool_is_named(dash_box: ScriptBox, tool: str) -> None:
    tools = {"mkdir", "rm", "ls", "dd", "tail", "head", "base64", "tr", "grep", "sed", "sort", "sleep"} - {
        tool
    }
    dash_box.path = link_tools(dash_box.home.parent / "tools", *tools)

    done = dash_box.run(kill_script(dash_box.run_directory))

    assert (done.returncode, done.stdout) == (69, f"OA_ERROR=missing_tool {tool}\n".encode())


def test_without_proc_it_ends_what_the_run_recorded(box: ScriptBox) -> None:
    hide_proc(box)
    box.dispatch("trap '' TERM; echo ready; sleep 600 & sleep 600; sleep 600")
    eventually(lambda: box.poll().log.size)

    reply = box.kill(grace_seconds=1)

    assert (reply.cancelled, reply.remaining, reply.exit) == (True, (), None)
    assert not box.processes()


def test_without_proc_an_ended_run_is_left_alone(box: ScriptBox) -> None:
    hide_proc(box)
    box.ends("exit 7")

    reply = box.kill()

    assert reply.cancelled
    assert reply.exit
    assert reply.exit.status == 7


def test_a_polite_child_of_an_ended_shell_may_clean_up(box: ScriptBox) -> None:
    box.ends("(trap 'echo cleaned > cleaned; exit' TERM; touch ready; while :; do sleep 0.1; done) & exit 0")
    eventually((box.home / "ready").exists)

    assert box.kill().cancelled
    assert (box.home / "cleaned").read_text() == "cleaned\n"


def test_a_double_dispatch_after_a_kill_runs_nothing(box: ScriptBox) -> None:
    script = dispatch_script(box.run_directory, "echo once >> counter; sleep 600", credential=None)
    box.run(script)
    eventually((box.home / "counter").exists)
    box.kill()

    assert parse_dispatch(box.text(script)).exists
    assert (box.home / "counter").read_text() == "once\n"
