"""What the connector remembers."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.journal import Journal, bounded, opened, until_written

OFFER = {"agent_id": "echo", "prompt": "x", "cwd": "/"}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "journal")
    yield journal
    journal.close()


def test_what_is_told_is_numbered_and_kept_until_it_was_heard(journal: Journal) -> None:
    for n in range(3):
        journal.tell("progress", n=n)

    assert [(frame.seq, frame.body["n"]) for frame in journal.outbox()] == [(1, 0), (2, 1), (3, 2)]
    journal.told(2)
    assert ([frame.seq for frame in journal.outbox()], journal.oldest) == ([3], 3)
    journal.told(3)
    assert (journal.outbox(), journal.oldest) == ([], 4)
    assert journal.tell("progress") == 4


def test_it_outlives_the_process(journal: Journal, tmp_path: Path) -> None:
    journal.take("job", 1, OFFER, time.time())
    journal.note("heard", 7)
    journal.close()

    again = Journal(tmp_path / "journal")

    assert (again.heard, [frame.kind for frame in again.outbox()]) == (7, ["accepted"])
    assert again.delegations()[0].offer == OFFER
    again.close()
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_change_is_all_or_nothing(journal: Journal) -> None:
    def fail_halfway() -> None:
        with journal.change():
            journal.note("heard", 9)
            journal.tell("answer")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()

    assert (journal.heard, journal.outbox(), journal.fact("last")) == (0, [], 0)


def test_a_delegation_is_forgotten_once_its_end_was_heard(journal: Journal) -> None:
    journal.take("job", 1, OFFER, 0)
    [delegation] = journal.delegations()
    journal.ended(delegation, status="completed")
    journal.ended(delegation, status="failed")

    assert [frame.kind for frame in journal.outbox()] == ["accepted", "result"]
    assert (journal.delegations()[0].phase, journal.delegations()[0].offer) == ("ended", {})
    journal.told(1)
    assert len(journal.delegations()) == 1
    journal.told(2)
    assert journal.delegations() == []


def test_an_older_attempt_has_nothing_to_tell(journal: Journal) -> None:
    journal.take("job", 1, OFFER, 0)
    [older] = journal.delegations()
    journal.take("job", 2, OFFER, 0)

    journal.ended(older, status="completed")
    journal.prompted(older)

    assert [frame.kind for frame in journal.outbox()] == ["accepted", "accepted"]
    assert (journal.delegations()[0].attempt, journal.delegations()[0].phase) == (2, "accepted")


def test_numbers_go_on_above_what_a_server_has_heard_before(journal: Journal) -> None:
    journal.take("job", 1, OFFER, 0)
    journal.ended(journal.delegations()[0], status="completed")

    journal.agree(500)

    assert [frame.seq for frame in journal.outbox()] == [501, 502]
    assert journal.tell("probe") == 503
    journal.told(502)
    assert journal.delegations() == []


def test_what_a_server_has_heard_is_not_told_again(journal: Journal) -> None:
    for _ in range(3):
        journal.tell("progress")

    journal.agree(2)

    assert [frame.seq for frame in journal.outbox()] == [3]


def test_a_batch_is_bounded(journal: Journal) -> None:
    for _ in range(40):
        journal.tell("progress", text="x" * 40_000)

    assert 1 <= len(journal.outbox()) <= 10
    assert len(journal.outbox(most_bytes=1)) == 1


@pytest.mark.parametrize("text", ["x" * 200_000, "\0" * 100_000, "😀" * 100_000, "\ud800" * 50_000])
def test_a_frame_fits_whatever_an_agent_says(journal: Journal, text: str) -> None:
    journal.tell("result", prose=text, status="completed", failed_tools=["y"])

    [frame] = journal.outbox()
    assert len(json.dumps(frame.body)) <= 60_000
    assert frame.body["status"] == "completed"
    assert frame.body["prose"]


def test_lists_that_are_too_long_are_left_out() -> None:
    assert bounded({"status": "failed", "failed_tools": ["x" * 100] * 5000}) == {"status": "failed"}


def test_a_frame_that_is_dropped_holds_its_place(journal: Journal) -> None:
    journal.tell("progress", text="bad")
    journal.dropped(journal.outbox()[0])

    assert [(frame.seq, frame.kind, frame.body) for frame in journal.outbox()] == [(1, "nothing", {})]


def test_every_change_is_on_the_disk(journal: Journal) -> None:
    assert isinstance(journal._link, sqlite3.Connection)
    assert journal._link.execute("pragma synchronous").fetchone() == (2,)
    assert journal._link.execute("pragma journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("bad", [b"this is no database at all" * 200, None], ids=["rubbish", "a torn page"])
def test_a_broken_journal_is_put_aside_and_begun_anew(tmp_path: Path, bad: bytes | None) -> None:
    file = tmp_path / "journal"
    journal = opened(file)
    for n in range(2_000):
        journal.tell("progress", n=n, text="x" * 100)
    journal.close()
    data = bytearray(file.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096 * 4] = b"\xff" * 4096 * 4
    file.write_bytes(data if bad is None else bad)

    again = opened(file)

    assert (again.waiting(), again.heard, again.oldest) == (0, 0, 1)
    assert (tmp_path / "journal.broken").stat().st_mode & 0o777 == 0o600
    again.close()


def test_a_journal_that_is_whole_is_kept(journal: Journal, tmp_path: Path) -> None:
    journal.tell("progress")
    journal.close()

    assert opened(tmp_path / "journal").waiting() == 1


def test_what_must_not_be_lost_is_written_when_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.journal.WRITE_PAUSE", 0)
    errors = [sqlite3.OperationalError("database or disk is full"), OSError(28, "no space")]

    def write() -> None:
        if errors:
            raise errors.pop()

    asyncio.run(until_written(write))

    assert errors == []
