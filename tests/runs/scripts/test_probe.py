"""A probe settles an unanswered dispatch: it ran, or it never will."""

from __future__ import annotations

import uuid

from runs.replies import parse_dispatch, parse_probe
from runs.scripts import dispatch_script, probe_script
from tests.runs.scripts.conftest import ScriptBox


def test_an_absent_run_can_never_start(box: ScriptBox) -> None:
    assert not box.probe().present

    late = box.dispatch("touch ran")

    assert late.exists
    assert box.files() == ["never"]
    assert not (box.home / "ran").exists()


def test_it_says_the_same_each_time(box: ScriptBox) -> None:
    assert [box.probe().present for _ in range(3)] == [False, False, False]


def test_a_started_run_is_present_with_its_pid(box: ScriptBox) -> None:
    pid = box.dispatch("sleep 30").pid

    reply = box.probe()

    assert (reply.present, reply.pid) == (True, pid)


def test_an_ended_run_is_present(box: ScriptBox) -> None:
    box.ends("true")

    assert box.probe().present


def test_a_run_whose_pid_is_unknown_is_present_without_one(box: ScriptBox) -> None:
    box.dispatch("sleep 30")
    (box.folder / "pid").unlink()

    reply = box.probe()

    assert (reply.present, reply.pid) == (True, None)


def test_a_dispatch_that_died_half_way_is_shut_out(box: ScriptBox) -> None:
    box.folder.mkdir(parents=True)
    (box.folder / "script.sh").write_text("touch ran")
    (box.folder / "forge-credential").write_text("https://x:secret@forge.example")
    (box.folder / "gitconfig").write_text("[credential]")

    assert not box.probe().present
    assert box.files() == ["never", "script.sh", "started"]
    assert not box.poll().present


def test_where_nothing_can_be_made_it_does_not_say_absent(box: ScriptBox) -> None:
    (box.home / ".openagents").write_text("a file in the way")

    done = box.run(probe_script(box.run_directory))

    assert (done.returncode, done.stdout) == (74, b"OA_ERROR=cannot_create_directory\n")


def test_a_probe_and_a_dispatch_at_the_same_moment_agree(dash_box: ScriptBox) -> None:
    outcomes = set()
    for number in range(200):
        dash_box.run_directory = f"$HOME/runs/{uuid.uuid4()}"
        scripts = [dispatch_script(dash_box.run_directory, "echo ran >> counter", credential=None)]
        scripts.insert(number % 2, probe_script(dash_box.run_directory))
        processes = [dash_box.start(script) for script in scripts]
        answers = [process.communicate()[0].decode() for process in processes]

        present = parse_probe(answers[number % 2]).present
        dispatched = parse_dispatch(answers[1 - number % 2])
        if present:
            dash_box.wait_for_end()
        ran = (dash_box.home / "counter").exists()

        assert present == ran == bool(dispatched.pid), answers
        (dash_box.home / "counter").unlink(missing_ok=True)
        outcomes.add(ran)

    assert outcomes == {True, False}
