"""The channel as the connector keeps it, where the other side is not itself; and what is left of a life before."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from connector import channel as channels
from connector import pairing
from connector.channel import Channel
from connector.cli import main
from connector.credentials import KEY, Credential
from connector.delegating import LONGEST_MS, Delegations
from connector.errors import AlreadyRunning, ConnectorError, NotLetIn, Unreachable
from connector.journal import Journal
from connector.places import Pairing, Places
from connector.server import LONGEST_PAUSE_SECONDS, _retry_after

PAIRING = Pairing("http://127.0.0.1:9", "id", "study", "curated", "smct_secret", [], {})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path / "state")
    places.save(PAIRING)
    return places


@pytest.fixture
def journal(places: Places) -> Iterator[Journal]:
    journal = Journal(places.journal_file)
    yield journal
    journal.close()


@pytest.fixture
def delegations(places: Places, journal: Journal) -> Delegations:
    return Delegations(PAIRING, places, journal)


class Scripted:
    """A server that answers one thing after the other, and lets nobody in at the end."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def connect(self, hello: dict[str, Any]) -> Any:
        if not self.answers:
            raise NotLetIn("at the end")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    "answer",
    [{}, {"epoch": "x", "received": 0}, {"epoch": 1}, {"epoch": None, "received": None},
     sqlite3.OperationalError("database or disk is full"), OSError(28, "no space left")],
    ids=str,
)  # fmt: skip
def test_it_goes_on_after_what_it_does_not_understand_and_cannot_write(
    journal: Journal, delegations: Delegations, answer: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(channels, "LONGEST_PAUSE", 0)

    with pytest.raises(NotLetIn):
        asyncio.run(Channel(Scripted(answer, answer), journal, delegations).keep())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [{}, {"job": "x"}, {"job": str(uuid4()), "attempt": "x"}, {"job": str(uuid4()), "attempt": 1, "timeout_ms": "x"}, []],
    ids=["nothing", "no id", "no attempt", "no time", "no map"],
)  # fmt: skip
def test_an_offer_that_is_none_is_heard_and_passed_over(
    journal: Journal, delegations: Delegations, body: Any
) -> None:
    Channel(Scripted(), journal, delegations)._take({"seq": 1, "kind": "offer", "body": body})  # type: ignore[arg-type]

    assert (journal.heard, journal.delegations()) == (1, [])


def offer(**more: Any) -> dict[str, Any]:
    return {"job": str(uuid4()), "attempt": 1, "agent_id": "a", "prompt": "p", "cwd": "/", **more}


def test_no_delegation_takes_longer_than_any_may(journal: Journal, delegations: Delegations) -> None:
    delegations.take(offer(timeout_ms=10**300))

    assert journal.delegations()[0].deadline <= time.time() + LONGEST_MS / 1000


def test_one_that_is_cancelled_before_it_began_leaves_no_credential(
    journal: Journal, delegations: Delegations, places: Places
) -> None:
    wanted = offer(**{KEY: {"origin": "https://a", "secret": "s"}})
    delegations.take(wanted)
    assert len(list(places.credentials.iterdir())) == 1

    delegations.cancel(wanted["job"], "unwanted")

    assert journal.delegations()[0].phase == "ended"
    assert list(places.credentials.iterdir()) == []


def test_a_life_that_begins_removes_the_credentials_of_what_has_ended(
    journal: Journal, delegations: Delegations, places: Places
) -> None:
    handed = {"origin": "https://a", "secret": "s"}
    ended = offer(**{KEY: handed})
    delegations.take(ended)
    journal.ended(journal.delegations()[0], status="completed")
    Credential(places.credentials, "one-that-is-not-known").keep(handed)
    (places.credentials / ".half.git.x7").write_text("password=")

    delegations.resume()

    assert list(places.credentials.iterdir()) == []


@pytest.mark.parametrize(("said", "seconds"), [("5", 5.0), ("999999999", LONGEST_PAUSE_SECONDS), ("9" * 400, None), ("x", None), ("²", None)])  # fmt: skip
def test_a_server_does_not_put_it_off_for_ever(said: str, seconds: float | None) -> None:
    headers = {"Retry-After": said.encode("utf-8")}

    assert _retry_after(httpx.Response(503, headers=headers)) == seconds


class Busy:
    """A server that has no room for a pairing, so many times."""

    def __init__(self, times: int, seconds: float) -> None:
        self.times, self.seconds = times, seconds

    async def start_pairing(self, description: dict[str, Any]) -> dict[str, Any]:
        self.times -= 1
        if self.times >= 0:
            raise Unreachable("rate_limited", self.seconds)
        return {"id": "p"}


def test_who_pairs_waits_as_the_server_asks() -> None:
    said: list[str] = []

    started = asyncio.run(pairing._asked(Busy(2, 0.01), {}, said.append))  # type: ignore[arg-type]

    assert started == {"id": "p"}
    assert said == ["The server asks to wait (rate_limited): asking again in 0 s."] * 2


def test_who_pairs_does_not_wait_longer_than_people_do() -> None:
    server = Busy(9, pairing.PATIENCE_SECONDS + 1)

    with pytest.raises(ConnectorError, match="cannot be reached: rate_limited"):
        asyncio.run(pairing._asked(server, {}, print))  # type: ignore[arg-type]

    assert server.times == 8


def test_nobody_pairs_beneath_a_connector_that_runs(places: Places, capsys: Any) -> None:
    held = places.lock()

    code = main(["--state-dir", str(places.folder), "pair", "--server", "http://127.0.0.1:9", "--again"])

    assert code == AlreadyRunning.exit_code
    assert held


def test_a_journal_that_cannot_be_read_is_said(places: Places, capsys: Any) -> None:
    places.journal_file.write_bytes(b"this is no database at all" * 200)

    assert main(["--state-dir", str(places.folder), "status"]) == 0
    assert "cannot be read" in capsys.readouterr().out


def test_an_address_without_a_port_is_refused(tmp_path: Path, capsys: Any) -> None:
    code = main(["--state-dir", str(tmp_path / "s"), "pair", "--server", "https://a.example:99999"])

    assert (code, "address" in capsys.readouterr().err) == (1, True)
