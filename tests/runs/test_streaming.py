"""Following runs: woken, resumable, and without a database connection while waiting."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection, connections

from base import wakeups
from runs import glimpses, streaming
from runs.models import Run
from runs.services import cancel, finish, log_text, record_poll
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
MakeRun = Callable[..., Run]


def printed(run: Run, text: str) -> Run:
    run = Run.objects.get(pk=run.pk)
    return record_poll(
        run.pk, {"present": True, "log_size": run.next_raw_offset + len(text.encode()), "output": text}
    )


def parsed(event: str) -> tuple[str, int, dict[str, Any]]:
    fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
    return fields["event"], int(fields["id"]), json.loads(fields["data"])


def events_of(run: Run, offset: int = 0) -> list[tuple[str, int, dict[str, Any]]]:
    return [parsed(event) for event in streaming.events(run.pk, offset) if event.startswith("id:")]


@pytest.fixture
def in_thread() -> Iterator[Callable[[Callable[[], None]], threading.Thread]]:
    """Runs something in another thread, whose connection is closed in the end."""
    threads: list[threading.Thread] = []

    def begin(work: Callable[[], None]) -> threading.Thread:
        def and_close() -> None:
            try:
                work()
            finally:
                connections.close_all()

        thread = threading.Thread(target=and_close, daemon=True)
        threads.append(thread)
        thread.start()
        return thread

    yield begin
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_an_ended_run_is_told_at_once(make_run: MakeRun) -> None:
    run = printed(make_run(), "hello\nworld\n")
    finish(run.pk, "failed", 3)

    told = events_of(run)

    assert [name for name, _, _ in told] == ["state", "output", "end"]
    assert told[1][1:] == (
        12,
        {"output": "hello\nworld\n", "offset": 0, "next_offset": 12, "truncated": False},
    )
    assert told[2][2]["state"] == "failed"
    assert told[2][2]["exit_status"] == 3


def test_it_resumes_from_an_offset(make_run: MakeRun) -> None:
    run = printed(make_run(), "hello\nworld\n")
    finish(run.pk, "completed", 0)

    told = events_of(run, 6)

    assert told[1][2]["output"] == "world\n"
    assert [name for name, _, _ in events_of(run, 12)] == ["state", "end"]


def test_a_run_that_does_not_exist_has_no_events() -> None:
    assert [event for event in streaming.events(uuid.uuid4()) if event.startswith("id:")] == []


def test_a_follower_is_woken_by_output_and_by_the_end(make_run: MakeRun, in_thread: Any) -> None:
    run, told = make_run(), []
    in_thread(lambda: told.extend(streaming.follow(run.pk)))
    eventually(lambda: told)  # where it stood at the beginning

    printed(run, "one\n")
    eventually(lambda: printed_texts(told) == ["one\n"])
    printed(run, "two\n")
    eventually(lambda: printed_texts(told) == ["one\n", "two\n"])
    finish(run.pk, "completed", 0)

    eventually(lambda: isinstance(told[-1], streaming.Stands) and told[-1].is_end)
    states = [news.run.state for news in told if isinstance(news, streaming.Stands)]
    assert states == ["admitted", "running", "completed", "completed"]


def test_it_gives_a_sign_of_life_while_nothing_happens(make_run: MakeRun) -> None:
    events = streaming.events(make_run().pk, heartbeat_seconds=0.05)

    assert next(events).startswith("retry:")
    assert parsed(next(events))[0] == "state"
    assert next(events) == ": still here\n\n"


def test_a_follower_holds_no_connection_while_it_waits_or_its_viewer_is_slow(make_run: MakeRun) -> None:
    run = make_run()
    printed(run, "hello")
    for news in streaming.follow(run.pk, heartbeat_seconds=0.05):
        assert connection.connection is None
        if news == streaming.Silent():
            return


def test_a_slow_download_holds_no_connection(make_run: MakeRun) -> None:
    run = printed(make_run(), "hello\n")

    assert next(log_text(run)) == "hello\n"

    assert connection.connection is None


def test_viewers_of_one_run_read_it_once_between_two_changes(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glimpses, "FRESH_SECONDS", 600.0)
    run = printed(make_run(), "one\n")
    with glimpses.of_this_process.at(run.pk) as look, glimpses.of_this_process.at(run.pk) as also_look:
        first = look()
        assert also_look() is first

        with wakeups.of_this_process.waiting_for(streaming.key_of(run.pk)):
            wakeups.of_this_process.wake(streaming.key_of(run.pk))
            assert also_look() is not first


def test_a_viewer_that_waits_for_anothers_look_holds_no_connection(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, read, held = make_run(), glimpses._read, []

    def noted(run_id: uuid.UUID) -> Any:
        held.append(connection.connection)
        return read(run_id)

    monkeypatch.setattr(glimpses, "_read", noted)
    assert connection.connection is not None

    next(streaming.follow(run.pk))

    assert held == [None]


def test_a_stream_outlives_a_database_that_goes_away(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "AGAIN_SECONDS", 0.0)
    run, read = printed(make_run(), "hello\n"), glimpses._read
    troubles = iter([OperationalError("the server is gone"), InterfaceError("the connection is closed")])

    def read_with_trouble(run_id: uuid.UUID) -> Any:
        if trouble := next(troubles, None):
            raise trouble
        return read(run_id)

    monkeypatch.setattr(glimpses, "_read", read_with_trouble)
    finish(run.pk, "completed", 0)

    assert [name for name, _, _ in events_of(run)] == ["state", "output", "end"]


def test_five_hundred_followers_share_one_listening_connection(make_run: MakeRun, in_thread: Any) -> None:
    run, ended = make_run(), []
    room = threading.BoundedSemaphore(20)  # as many as the web process has connections for its views

    def is_ended() -> bool:
        with room:
            state = Run.objects.values_list("state", flat=True).get(pk=run.pk)
            connections.close_all()
        return state == "completed"

    def watch() -> None:
        ended.append(wakeups.wait_until(streaming.key_of(run.pk), is_ended, seconds=90))

    for _ in range(500):
        in_thread(watch)
    eventually(
        lambda: len(wakeups.of_this_process._waiters.get(streaming.key_of(run.pk), ())) == 500, seconds=90
    )
    eventually(is_listening)
    # The listening one, this test's, and those of the few that are looking just now. One that was closed is there a moment longer.
    eventually(lambda: connection_count() <= 22)
    assert not ended
    finish(run.pk, "completed", 0)

    eventually(lambda: len(ended) == 500, seconds=90)
    assert set(ended) == {True}


def test_a_cancellation_wakes_whoever_watches(make_run: MakeRun, in_thread: Any) -> None:
    run, woken = make_run(), []
    in_thread(
        lambda: woken.append(
            wakeups.wait_until(
                streaming.key_of(run.pk),
                lambda: Run.objects.get(pk=run.pk).cancellation_requested_at is not None,
                seconds=30,
            )
        )
    )
    eventually(lambda: wakeups.of_this_process._waiters)

    cancel(run)

    eventually(lambda: woken == [True])


def printed_texts(told: list[Any]) -> list[str]:
    return [news.piece.output for news in told if isinstance(news, streaming.Printed)]


def connection_count() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def is_listening() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'"
        )
        return bool(cursor.fetchone()[0])
