"""What is kept of a run's output, and how it is read again, through the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pgtrigger
import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs import retention
from runs.errors import InvalidOutputOffset
from runs.log_store import TAIL_BYTES
from runs.models import Run, RunLogChunk
from runs.services import finish, log_text, read_log, read_output, record_poll

pytestmark = pytest.mark.django_db
MakeRun = Callable[..., Run]
TOKEN = "sk-abcdefghijklmnopqrstuvwxyz"


def printed(run: Run, data: bytes | str) -> Run:
    """The run after one more poll that brought this output."""
    raw = data.encode() if isinstance(data, str) else data
    run = Run.objects.get(pk=run.pk)
    size = run.next_raw_offset + len(raw)
    return record_poll(run.pk, {"present": True, "log_size": size, "output": raw})


def everything_stored(run: Run) -> str:
    """All that a person with access to the database could read of the output."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select output || coalesce(output_state::text, '') from box_runs where id = %s", [run.pk]
        )
        text: str = cursor.fetchone()[0]
    return text + "".join(log_text(run))


def test_it_reads_on_from_each_next_offset(make_run: MakeRun) -> None:
    run = printed(make_run(), "one\n")
    first = read_output(run)
    run = printed(run, "two\n")

    second = read_output(run, first["next_offset"])

    assert (first["output"], second["output"]) == ("one\n", "two\n")
    assert read_output(run, second["next_offset"])["output"] == ""


def test_offsets_count_raw_bytes_also_where_a_secret_was_struck_out(make_run: MakeRun) -> None:
    run = printed(make_run(), f"key {TOKEN} end\n")

    read = read_output(run)
    assert read["output"] == "key [REDACTED] end\n"
    assert read["next_offset"] == len(f"key {TOKEN} end\n")
    assert read_output(run, len(f"key {TOKEN}"))["output"] == " end\n"


def test_a_long_output_says_where_what_is_kept_begins(make_run: MakeRun) -> None:
    run = printed(make_run(), "x" * 30_000)

    read = read_output(run, 0)

    assert len(read["output"]) == TAIL_BYTES
    assert read["output_base_offset"] == 30_000 - TAIL_BYTES
    assert read["truncated"] is True
    assert read_output(run, 29_990)["output"] == "x" * 10


@pytest.mark.parametrize("offset", [-1, True, "5", 1.5])
def test_it_refuses_an_offset_that_is_none(make_run: MakeRun, offset: Any) -> None:
    run = make_run()

    with pytest.raises(InvalidOutputOffset):
        read_output(run, offset)
    with pytest.raises(InvalidOutputOffset):
        read_log(run, offset)


def test_a_secret_in_two_polls_is_never_readable(make_run: MakeRun) -> None:
    run = printed(make_run(), f"start {TOKEN[:10]}")
    assert "abcdef" not in everything_stored(run)
    assert read_output(run)["output"] == "start "
    assert read_output(run)["next_offset"] == len("start ")

    run = printed(run, f"{TOKEN[10:]}\nafter\n")

    assert TOKEN[3:10] not in everything_stored(run)
    assert TOKEN[10:] not in everything_stored(run)
    assert "".join(log_text(run)) == "start [REDACTED]\nafter\n"


@pytest.mark.parametrize("between", ["\r", "\x1b[31m", "\x1b[0m\r"])
def test_a_secret_divided_by_what_a_terminal_hides_is_never_readable(make_run: MakeRun, between: str) -> None:
    run = printed(printed(make_run(), f"{TOKEN[:12]}{between}"), f"{TOKEN[12:]} end\n")

    run = finish(run.pk, "completed", 0)

    assert TOKEN[12:] not in everything_stored(run)
    assert TOKEN[:12] not in everything_stored(run)


def test_a_secret_at_the_bound_of_the_tail_is_never_readable(make_run: MakeRun) -> None:
    for cut in range(len(TOKEN) + 2):
        run = printed(make_run(), "y" * 50 + " " + TOKEN + " " + "x" * (TAIL_BYTES - cut))

        assert TOKEN[-8:] not in everything_stored(run)
        assert TOKEN[3:11] not in everything_stored(run)


def test_a_private_key_in_many_polls_is_never_readable(make_run: MakeRun) -> None:
    run = printed(make_run(), "-----BEGIN RSA PRIV")
    run = printed(run, "ATE KEY-----\nMIIEow")
    for _ in range(5):
        run = printed(run, "IBAAKCAQEA" * 250 + "\n")
        assert "AKCAQEA" not in everything_stored(run)
    run = printed(run, "-----END RSA PRIVATE KEY-----\nafter\n")

    assert "".join(log_text(run)) == "[REDACTED]\nafter\n"


def test_a_listed_value_of_the_installation_is_struck_out(make_run: MakeRun, settings: Any) -> None:
    settings.BOX_API = settings.BOX_API | {"secret_values": ("correct horse battery",)}

    run = printed(printed(make_run(), "say correct ho"), "rse battery now\n")

    assert read_output(run)["output"] == "say [REDACTED] now\n"


def test_the_end_releases_what_was_held_back(make_run: MakeRun) -> None:
    run = printed(make_run(), "the end sk-abc")
    assert read_output(run)["output"] == "the end "

    run = finish(run.pk, "completed", 0)

    assert read_output(run)["output"] == "the end sk-abc"
    assert run.last_output_offset == run.received_offset == len("the end sk-abc")


def test_held_back_output_outlives_a_change_of_the_secret_key(make_run: MakeRun, settings: Any) -> None:
    run = printed(make_run(), "a sk-abc")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-secret-key-" * 4

    run = printed(run, "d.\n")

    assert read_output(run)["output"] == "a sk-abcd.\n"


def test_held_back_output_that_cannot_be_opened_is_read_from_the_box_again(
    make_run: MakeRun, settings: Any
) -> None:
    run = printed(make_run(), "a sk-abc")
    settings.SECRET_KEY = "another-secret-key-" * 4

    again = record_poll(run.pk, {"present": True, "log_size": 10, "output": b"d.", "offset": 8})
    assert (again.output, again.next_raw_offset) == ("a ", 2)
    run = record_poll(run.pk, {"present": True, "log_size": 10, "output": b"sk-abcd.", "offset": 2})

    assert read_output(finish(run.pk, "completed", 0))["output"] == "a sk-abcd."


def test_a_nul_byte_is_stored_as_a_visible_mark(make_run: MakeRun) -> None:
    run = finish(printed(make_run(), b"a\x00b\n").pk, "completed", 0)

    assert run.output == "a␀b\n"
    assert read_output(run, 2)["output"] == "b\n"


def test_a_character_that_comes_byte_by_byte_is_whole(make_run: MakeRun) -> None:
    run, text = make_run(), "日本🙂é\n"
    seen, position = "", 0
    for byte in text.encode():
        run = printed(run, bytes([byte]))
        read = read_output(run, position)
        seen, position = seen + read["output"], read["next_offset"]

    assert seen == text
    assert "".join(log_text(run)) == text


def test_bytes_that_are_no_text_become_one_replacement_character(make_run: MakeRun) -> None:
    run = finish(printed(make_run(), b"ok \xff\xfe\xfd done").pk, "completed", 0)

    assert run.output == "ok \N{REPLACEMENT CHARACTER} done"


def test_the_same_poll_again_changes_nothing(make_run: MakeRun) -> None:
    poll = {"present": True, "log_size": 6, "output": "hello\n"}
    run = make_run()
    first = record_poll(run.pk, poll)
    second = record_poll(run.pk, poll)

    assert first.output == second.output == "hello\n"
    assert RunLogChunk.objects.filter(run=run).count() == 1


def test_a_poll_that_overlaps_brings_only_what_is_new(make_run: MakeRun) -> None:
    run = make_run()
    record_poll(run.pk, {"present": True, "log_size": 5, "output": "hello", "offset": 0})
    run = record_poll(run.pk, {"present": True, "log_size": 11, "output": "hello world", "offset": 0})

    assert run.output == "hello world"
    assert run.last_output_offset == 11


def test_it_counts_the_bytes_that_came_not_those_that_were_announced(make_run: MakeRun) -> None:
    run = record_poll(make_run().pk, {"present": True, "log_size": 900, "output": "hello"})

    assert run.last_output_offset == 5
    assert run.log_size == 900


def test_the_whole_log_is_kept_and_put_together(make_run: MakeRun) -> None:
    run = make_run()
    lines = [f"line {number}\n" for number in range(150)]
    for line in lines:
        run = printed(run, line)
    run = finish(run.pk, "completed", 0)

    assert "".join(log_text(run)) == "".join(lines)
    assert RunLogChunk.objects.filter(run=run).count() <= 4


def test_a_log_is_read_by_offset_and_limit(make_run: MakeRun) -> None:
    run = make_run()
    for _ in range(3):
        run = printed(run, "0123456789" * 10_000)

    piece = read_log(run, 99_995, 10)

    assert (piece.output, piece.start, piece.next_offset) == ("5678901234", 99_995, 100_005)
    assert piece.truncated is False


def test_what_a_ceiling_keeps_out_is_counted_and_shown(make_run: MakeRun, settings: Any) -> None:
    settings.BOX_API = settings.BOX_API | {"run_log_bytes": 25_000}
    run, first, last = (
        make_run(),
        "a" * 9_999 + "\n" + "b" * 9_999 + "\n",
        "c" * 9_999 + "\n" + "d" * 9_999 + "\n",
    )
    for letter in "abcd":
        run = printed(run, letter * 9_999 + "\n")
    run = finish(run.pk, "completed", 0)

    assert run.dropped_bytes == 20_000
    assert run.output[-10_000:] == "d" * 9_999 + "\n"
    piece = read_log(run, 0)
    assert piece.output == first
    assert piece.dropped_bytes == 20_000
    after = read_log(run, piece.next_offset)
    assert after.output == last  # the end is on the row in any case
    assert next(log_text(run)) == first


def test_a_gap_in_what_is_kept_is_said(make_run: MakeRun, settings: Any) -> None:
    settings.BOX_API = settings.BOX_API | {"run_log_bytes": 100}
    run = printed(make_run(), "kept\n")
    run = finish(printed(run, "z" * 60_000).pk, "completed", 0)

    pieces = list(log_text(run))

    assert pieces == ["kept\n", f"\n[{60_000 - TAIL_BYTES:,} bytes are not kept]\n", "z" * TAIL_BYTES]
    assert read_log(run, 5).truncated is True


def test_an_output_without_any_mapping_can_be_read(make_run: MakeRun) -> None:
    run = make_run(output="hello", last_output_offset=5)
    struck = make_run(output="key [REDACTED]", last_output_offset=40)

    assert read_output(run, 2)["output"] == "llo"
    assert read_output(struck, 0)["output"] == "key [REDACTED]"
    assert read_output(struck, 7)["output"] == ""


def test_an_ended_run_takes_no_more_output(make_run: MakeRun) -> None:
    run = finish(printed(make_run(), "hello").pk, "cancelled")

    later = printed(run, " world")

    assert later.output == "hello"
    assert later.state == "cancelled"


pieces_of_logs = st.lists(
    st.sampled_from(
        [TOKEN.encode(), "日本🙂é".encode(), b"plain ", b"\n", b"\0", b"https://u:p@host/x ", b"\xff"]
    )
    | st.binary(max_size=8),
    max_size=10,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces_of_logs, st.integers(1, 7))
def test_a_reader_who_follows_gets_the_log_exactly_once(
    make_run: MakeRun, pieces: list[bytes], limit: int
) -> None:
    run, followed, position = make_run(), "", 0
    for piece in pieces:
        run = printed(run, piece)
        read = read_output(run, position)
        followed, position = followed + read["output"], read["next_offset"]
    run = finish(run.pk, "completed", 0)
    followed += read_output(run, position)["output"]

    whole, position = "", 0
    while (piece := read_log(run, position, limit)).next_offset > position:
        whole, position = whole + piece.output, piece.next_offset

    assert followed == whole == run.output
    assert position == len(b"".join(pieces))


def test_logs_are_pruned_after_their_time_and_the_end_stays(make_run: MakeRun, settings: Any) -> None:
    old, new, alive = (printed(make_run(), "hello\n") for _ in range(3))
    finish(old.pk, "completed", 0)
    finish(new.pk, "completed", 0)
    RunLogChunk.objects.update(created_at=timezone.now() - timedelta(days=40))
    with pgtrigger.ignore("runs.Run:run_2_terminal"):
        Run.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=31))

    retention.prune_logs()

    assert set(RunLogChunk.objects.values_list("run_id", flat=True)) == {new.pk, alive.pk}
    assert "".join(log_text(Run.objects.get(pk=old.pk))) == "hello\n"
    settings.BOX_API = settings.BOX_API | {"run_log_retention_days": 0}
    retention.prune_logs()
    assert RunLogChunk.objects.count() == 2
