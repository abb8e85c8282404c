"""What a long run calls flat, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.long.aftermath import error_lines
from benchmarks.long.judgement import of_parts, of_tables
from benchmarks.long.samples import MIB, PartSample, Samples, TableSample, slope


def watched(memory: list[float]) -> Samples:
    """A part called web, looked at once a minute."""
    taken = [(60.0 * minute, PartSample(value, 20, 4)) for minute, value in enumerate(memory)]
    return Samples(parts={"web": taken}, pids={"web": {1}})


def counted(name: str, rows: list[int], size: int = MIB) -> Samples:
    """One table at the beginning, half-way and at the end, with a hundred actions in each half."""
    moments = [(float(n), 100 * n, {name: TableSample(count, size)}) for n, count in enumerate(rows)]
    return Samples(tables=moments)


def test_memory_that_grows_all_the_time_is_wrong_and_one_peak_is_not() -> None:
    flat = [100.0 + minute % 2 for minute in range(30)]
    growing = [100.0 + minute for minute in range(30)]

    assert of_parts(watched(flat), 30)[1] == []
    assert of_parts(watched([*flat[:20], 200.0, *flat[21:]]), 30)[1] == []
    assert of_parts(watched(growing), 30)[1] == ["web: memory grew by 14 MiB in the second half"]
    assert of_parts(watched(growing), 5)[1] == []


def test_a_part_that_ended_is_wrong() -> None:
    samples = watched([100.0] * 30)
    samples.pids["web"].add(2)

    assert of_parts(samples, 30)[1] == ["web ended and was started again 1 times"]


@pytest.mark.parametrize(
    ("name", "rows", "is_right"),
    [
        ("box_runs", [0, 100, 200], True),
        ("box_runs_history", [0, 100, 400], False),
        ("django_q_ormq", [0, 5, 3], True),
        ("django_q_ormq", [0, 5, 90], False),
        ("a_table_that_nobody_named", [0, 100, 200], False),
    ],
)
def test_only_the_ledger_grows_and_as_much_with_each_action(
    name: str, rows: list[int], is_right: bool
) -> None:
    assert (of_tables(counted(name, rows), 30)[1] == []) is is_right


def test_a_steady_table_that_swells_is_wrong() -> None:
    samples = counted("schedule_slots", [1, 1, 1])
    samples.tables[-1][2]["schedule_slots"] = TableSample(1, 9 * MIB)

    assert of_tables(samples, 30)[1] == ["schedule_slots: 1 rows, but 1.00 MiB became 9.00 MiB"]


def test_a_slope_is_the_median_of_all_pairs() -> None:
    straight = [(float(n), 2.0 * n) for n in range(9)]

    assert slope([*straight, (9.0, 900.0)]) == 2.0
    assert slope([(0.0, 1.0)]) == 0.0


def test_errors_are_found_in_lines_of_every_form(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "postgres").mkdir()
    lines = [
        '{"level": "error", "event": "broken"}',
        '{"level": "warning", "event": "odd"}',
        "Traceback (most",
    ]
    (tmp_path / "logs" / "web.log").write_text(
        "\n".join([*lines, '{"level": "info", "event": "error_free"}'])
    )
    (tmp_path / "postgres" / "postgres.log").write_text("LOG:  ready\n2026 ERROR:  no such thing\n")

    errors, warnings = error_lines(tmp_path)

    assert set(errors) == {
        "web.log: broken",
        "web.log: Traceback (most",
        "postgres.log: ERROR:  no such thing",
    }
    assert dict(warnings) == {"web.log: odd": 1}


def test_minutes_are_for_those_that_go_on_until_then(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["jobs", "--minutes", "3"])
    with pytest.raises(SystemExit):
        main(["longrun", "--minutes", "-3"])

    said = capsys.readouterr().err
    assert "jobs takes the time it needs" in said
    assert "must be a number of minutes, not '-3'" in said
