"""`manage.py runs`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from base import hooks
from runs.models import Run
from runs.services import finish, record_poll

MakeRun = Callable[..., Run]


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("runs", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_it_lists_the_newest_runs(make_run: MakeRun) -> None:
    first, second = make_run(command="echo first"), make_run(command="echo second\nexit 1")
    finish(first.pk, "failed", 3)

    assert [line.split()[0] for line in said("list").splitlines()[1:]] == [str(second.pk), str(first.pk)]
    assert str(first.pk) not in said("list", "--alive")
    assert str(second.pk) not in said("list", "--state", "failed")
    assert said("list", "--box", "nothing").strip() == "no runs"


@pytest.mark.django_db
def test_it_lists_for_programs(make_run: MakeRun) -> None:
    run = make_run()

    line = json.loads(said("list", "--json"))

    assert line["id"] == str(run.pk)
    assert line["state"] == "admitted"


@pytest.mark.django_db
def test_it_shows_a_run_by_the_beginning_of_its_id(make_run: MakeRun) -> None:
    run = make_run(command="echo [bold]x[/bold]")
    record_poll(run.pk, {"present": True, "log_size": 10, "output": "last line\n"})
    finish(run.pk, "timed_out", None, "run_duration_exceeded")

    text = said("show", str(run.pk)[:13])

    assert "ran past its deadline, run_duration_exceeded" in text
    assert "echo [bold]x[/bold]" in text
    assert "last line" in text
    assert json.loads(said("show", str(run.pk), "--json"))["state"] == "timed_out"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "status", "reason", "told"),
    [
        ("completed", 0, None, "ended with exit status 0"),
        ("failed", 3, None, "ended with exit status 3"),
        ("failed", None, "box_stopped", "never started, box_stopped"),
        ("timed_out", 143, "run_duration_exceeded", "ran past its deadline, exit status 143, run_duration_exceeded"),
    ],
    ids=["completed", "another status", "never started", "timed out"],
)  # fmt: skip
def test_it_says_how_a_run_ended_once_and_no_line_ends_in_spaces(
    make_run: MakeRun, state: str, status: int | None, reason: str | None, told: str
) -> None:
    run = make_run(command="make")
    finish(run.pk, state, status, reason)

    shown = said("show", str(run.pk)).splitlines()

    (ended,) = [line for line in shown if line.startswith("ended")]
    assert ended.split(maxsplit=1)[1] == told
    assert [line for line in shown + said("list").splitlines() if line.endswith(" ")] == []


@pytest.mark.django_db
def test_the_list_shows_what_somebody_wanted_to_be_run(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(command="# what prepares a clone\nmake all")
    monkeypatch.setattr(hooks.wanted_commands, "_callables", [lambda runs: {run.pk: "\nmake all"}])

    assert said("list").splitlines()[1].endswith("  make all")


@pytest.mark.django_db
def test_odd_arguments_of_the_list_are_no_error(make_run: MakeRun) -> None:
    run = make_run()

    assert str(run.pk) in said("list", "--limit", "9" * 30)
    assert said("list", "--box", "abc\udcff").strip() == "no runs"


@pytest.mark.django_db
@pytest.mark.parametrize("ref", ["00000000-0000-0000-0000-000000000000", "zzzz", "a", "%%%%", "abc\udcff"])
def test_an_unknown_run_has_an_exit_status_of_its_own(ref: str) -> None:
    with pytest.raises(CommandError) as error:
        said("show", ref)

    assert error.value.returncode == 3


@pytest.mark.django_db
def test_it_prints_what_a_run_printed_without_what_could_trick_a_terminal(make_run: MakeRun) -> None:
    run = make_run()
    output = "plain \x1b]0;title\x07\x1b[2Jred\n"
    record_poll(run.pk, {"present": True, "log_size": len(output), "output": output})
    finish(run.pk, "completed", 0)

    assert "\x1b" not in said("tail", str(run.pk))
    assert said("tail", str(run.pk), "--offset", str(len(output) - 4)) == "red\n"
    assert said("tail", str(run.pk), "--raw") == output


@pytest.mark.django_db(transaction=True)
def test_following_an_ended_run_tells_how_it_ended(make_run: MakeRun, capsys: Any) -> None:
    good, bad = make_run(), make_run()
    record_poll(good.pk, {"present": True, "log_size": 6, "output": "hello\n"})
    finish(good.pk, "completed", 0)
    finish(bad.pk, "failed", 3)

    assert said("tail", "-f", str(good.pk)) == "hello\n"
    with pytest.raises(SystemExit) as ended:
        said("tail", "-f", str(bad.pk))

    assert ended.value.code == 1
    assert "exit status 3" in capsys.readouterr().err


@pytest.mark.django_db
def test_it_asks_for_the_end_of_a_run(make_run: MakeRun) -> None:
    run = make_run()

    assert "will be ended" in said("cancel", str(run.pk))

    assert Run.objects.get(pk=run.pk).cancellation_requested_at is not None


@pytest.mark.django_db
def test_it_recovers(make_run: MakeRun) -> None:
    make_run(next_step_at=None)

    assert said("recover").strip() == "1 run made due"
