"""Real commands in real boxes: what went wrong for others must go right here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from boxes.client import client
from boxes.models import Box
from runs import pump
from runs.models import Run
from runs.services import cancel, log_text, read_output
from tests.waiting import eventually

pytestmark = pytest.mark.django_db
Start = Callable[..., Run]


def until_ended(*runs: Run, seconds: float = 90.0) -> list[Run]:
    """The runs once the pump has brought them to their ends."""
    ids = [run.pk for run in runs]

    def ended() -> Any:
        pump.run_once()
        return not Run.objects.filter(pk__in=ids).exclude(state__in=Run.TERMINAL_STATES).exists()

    eventually(ended, seconds=seconds)
    return [Run.objects.get(pk=run_id) for run_id in ids]


def until_printed(run: Run, text: str) -> None:
    def printed() -> bool:
        pump.run_once()
        return text in Run.objects.get(pk=run.pk).output

    eventually(printed)


def marked(run: Run) -> list[psutil.Process]:
    """The living processes that carry the run's mark."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if (
                str(run.pk) in environment.get("OPENAGENTS_RUN_MARK", "")
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_the_output_is_complete_when_the_end_is_told(start: Start) -> None:
    lines = 80_000
    command = f"i=0; while [ $i -lt {lines} ]; do echo 0123456789012345678901234567890123456789012345678901234567890$i; i=$((i+1)); done; exit 3"

    [run] = until_ended(start(command))

    assert (run.state, run.exit_status) == ("failed", 3)
    assert run.output.endswith(f"{lines - 1}\n")
    text = "".join(log_text(run))
    assert len(text.splitlines()) == lines
    assert run.last_output_offset == len(text) > 5_000_000
    assert run.dropped_bytes == 0


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat <<'EOF'\nhello $HOME\nEOF\n", "hello $HOME\n"),
        ("sleep 1000 & echo started; exit 0", "started\n"),
        ("bash -c 'exec 3>&1; sleep 900 & '; echo on", "on\n"),
    ],
    ids=["here-document", "background child", "child that holds the output"],
)
def test_a_run_ends_when_its_shell_does(start: Start, command: str, output: str) -> None:
    [run] = until_ended(start(command))

    assert (run.state, run.exit_status, run.output) == ("completed", 0, output)


@pytest.mark.parametrize(
    ("command", "status", "signal"),
    [
        ("set -e; false; echo no", 1, None),
        ("exec false", 1, None),
        ("exit 7", 7, None),
        ("exit 137", 137, None),
        ("kill -9 $$", 137, "SIGKILL"),
        ("kill -TERM $$", 143, "SIGTERM"),
        ("kill -SEGV $$", 139, "SIGSEGV"),
        ("trap '' EXIT; exit 5", 5, None),
        ("trap 'exit 9' EXIT; exit 5", 9, None),
        ("kill -9 -$$", 137, "SIGKILL"),
        ("no-such-program", 127, None),
        ("#!/no/such/interpreter\n", None, None),
    ],
)
def test_every_end_is_recorded(start: Start, command: str, status: int | None, signal: str | None) -> None:
    [run] = until_ended(start(command))

    assert run.state == "failed"
    assert run.exit_signal == signal
    assert run.exit_status is not None
    assert status in (None, run.exit_status)


def test_no_process_of_a_cancelled_run_remains(start: Start) -> None:
    run = start(
        "sh -c 'trap \"\" TERM; sleep 600 & setsid sleep 600 & nohup sleep 600 >/dev/null 2>&1 & echo up; wait'"
    )
    until_printed(run, "up")
    eventually(lambda: len(marked(run)) >= 4)

    cancel(run)
    [run] = until_ended(run)

    assert (run.state, run.kill_confirmed) == ("cancelled", True)
    assert marked(run) == []


def test_a_nul_byte_is_shown_and_does_not_stop_the_run(start: Start) -> None:
    [run] = until_ended(start("printf 'a\\000b\\n'"))

    assert (run.state, run.output) == ("completed", "a␀b\n")


def test_a_text_that_comes_byte_by_byte_is_whole(start: Start) -> None:
    text = "日本🙂é"
    octal = " ".join(f"{byte:03o}" for byte in text.encode())
    run = start(f'for byte in {octal}; do printf "\\\\$byte"; sleep 0.15; done')
    seen, position = "", 0

    def read() -> bool:
        nonlocal seen, position
        pump.run_once()
        read = read_output(Run.objects.get(pk=run.pk), position)
        seen, position = seen + read["output"], read["next_offset"]
        return Run.objects.get(pk=run.pk).is_terminal

    eventually(read)

    assert seen == Run.objects.get(pk=run.pk).output == text


def test_a_secret_in_two_writes_is_never_readable(start: Start) -> None:
    first, second = "sk-abcdefghij", "klmnopqrstuvwxyz"
    run = start(f"printf 'key {first}'; sleep 2; printf '{second} end\\n'")
    seen = set()

    def look() -> bool:
        pump.run_once()
        row = Run.objects.get(pk=run.pk)
        seen.update((row.output, str(row.output_state), "".join(log_text(row))))
        return row.is_terminal

    eventually(look)

    assert all("abcdefghij" not in text and second not in text for text in seen)
    assert Run.objects.get(pk=run.pk).output == "key [REDACTED] end\n"


def test_noise_of_any_bytes_is_stored_and_counted(start: Start) -> None:
    [run] = until_ended(start("head -c 300000 /dev/urandom; printf '\\nend\\n'"))

    assert run.state == "completed"
    assert run.last_output_offset == 300_005
    assert run.output.endswith("\nend\n")


def test_a_long_log_is_kept_byte_for_byte(start: Start) -> None:
    lines = 250_000
    [run] = until_ended(start(f"seq -f 'line %012.0f of a long log' {lines}"), seconds=120)

    expected = "".join(f"line {number:012d} of a long log\n" for number in range(1, lines + 1))
    digest = hashlib.sha256()
    for piece in log_text(run):
        digest.update(piece.encode())
    assert digest.hexdigest() == hashlib.sha256(expected.encode()).hexdigest()
    assert run.last_output_offset == len(expected)
    assert run.log_chunks.count() < 60


def test_a_command_that_removes_its_own_directory_is_lost_not_stuck(start: Start) -> None:
    run = start('rm -rf "$OPENAGENTS_RUN_DIRECTORY"; sleep 600')

    [run] = until_ended(run)
    pump.run_once()

    assert (run.state, run.failure_reason) == ("lost", "run_directory_missing")
    assert Run.objects.get(pk=run.pk).kill_confirmed
    assert marked(run) == []


def test_a_command_that_truncates_its_log_still_ends(start: Start) -> None:
    run = start('seq 1000; sleep 1; : > "$OPENAGENTS_RUN_DIRECTORY/output.log"; exit 0')

    [run] = until_ended(run)

    assert run.state == "completed"


def test_the_longest_hostile_command_runs_as_it_is(start: Start) -> None:
    text = "'\"$(echo no)`echo no`\\ \t€"
    command = f"cat <<'E O F'\n{text}\nE O F\n: '" + "x" * 7000 + "'\nprintf '%s\\n' '$(reboot)'"

    [run] = until_ended(start(command))

    assert run.output == f"{text}\n$(reboot)\n"


def test_a_box_that_is_stopped_ends_its_run(start: Start, box: Box) -> None:
    run = start("echo up; sleep 600")
    until_printed(run, "up")

    client().stop(str(box.box_id), force=True)
    [run] = until_ended(run)

    assert run.state == "lost"
    assert run.failure_reason in ("box_stopped", "machine_not_running", "box_not_found", "box_gone")


def test_many_runs_on_many_boxes_end_right(
    make_box: Callable[..., Box], conversation: Any, start: Start
) -> None:
    boxes = [make_box(conversation) for _ in range(5)]
    runs = [
        start(f"echo run {number}; sleep 0.{number}; exit {number}", on=box)
        for number, box in enumerate(boxes)
    ]

    ended = until_ended(*runs)

    assert [run.exit_status for run in ended] == [0, 1, 2, 3, 4]
    assert [run.output for run in ended] == [f"run {number}\n" for number in range(5)]


def test_a_run_outlives_a_restart_of_the_provider(start: Start, localbox: Any, tmp_path: Path) -> None:
    run = start("echo before; sleep 4; echo after; exit 6")
    until_printed(run, "before")

    localbox.kill9()
    for _ in range(3):
        pump.run_once()
        time.sleep(0.2)
    localbox.start()
    [run] = until_ended(run)

    assert (run.state, run.exit_status, run.output) == ("failed", 6, "before\nafter\n")
