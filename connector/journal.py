"""What must outlive the process: what was heard, what is still to be told, and which delegations are at work. SQLite, with every
change committed to the disk before anything follows from it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector.logs import trouble

ACCEPTED, OPENED, PROMPTED, ENDED = "accepted", "opened", "prompted", "ended"
WRITE_PAUSE = 5.0
FRAME_BYTES = 60_000
"""Of the 65,536 that the server takes."""
SHORT_CHARACTERS = 200
"""Texts of this length are not cut: they are names, not prose."""

_TABLES = """
    create table if not exists facts (name text primary key, value integer not null);
    create table if not exists outbox (seq integer primary key, kind text not null, body text not null);
    create table if not exists delegations (
        job text primary key, attempt integer not null, phase text not null, offer text not null,
        session_id text not null default '', deadline real not null, result_seq integer);
"""


@dataclass(frozen=True)
class Told:
    """A frame that the server has not said it has."""

    seq: int
    kind: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Delegation:
    """A delegation that was taken. `deadline` is when its time is over, by the clock of the wall."""

    job: str
    attempt: int
    phase: str
    offer: dict[str, Any]
    session_id: str
    deadline: float


class Journal:
    """The one journal of a connector. For one thread."""

    def __init__(self, file: Path) -> None:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        file.chmod(0o600)
        self._link = sqlite3.connect(file, isolation_level=None)
        self.on_tell: Callable[[], object] = lambda: None
        """Called when there is something new to tell."""
        try:
            self._link.executescript(f"pragma journal_mode = wal; pragma synchronous = full; {_TABLES}")
        except BaseException:
            self._link.close()
            raise

    def close(self) -> None:
        self._link.close()

    def is_whole(self) -> bool:
        """Whether everything in it can be read. Raises sqlite3.DatabaseError where that cannot even be asked."""
        return bool(self._link.execute("pragma quick_check(1)").fetchone() == ("ok",))

    @contextmanager
    def change(self) -> Iterator[None]:
        """All that is written inside is written, or none of it. May be nested."""
        if self._link.in_transaction:
            yield
            return
        self._link.execute("begin immediate")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has ended it already
                self._link.execute("rollback")
            raise
        self._link.execute("commit")

    def fact(self, name: str) -> int:
        row = self._link.execute("select value from facts where name = ?", [name]).fetchone()
        return int(row[0]) if row else 0

    def note(self, name: str, value: int) -> None:
        self._link.execute("insert or replace into facts values (?, ?)", [name, value])

    @property
    def heard(self) -> int:
        """The last frame of the server that was taken."""
        return self.fact("heard")

    @property
    def oldest(self) -> int:
        """The number of the oldest frame that is still to be told, or else of the next one."""
        row = self._link.execute("select min(seq) from outbox").fetchone()
        return int(row[0]) if row[0] is not None else self.fact("last") + 1

    def tell(self, kind: str, **body: Any) -> int:
        """Put something into the outbox; its number. It is cut to what a frame may hold."""
        with self.change():
            seq = self.fact("last") + 1
            self.note("last", seq)
            text = json.dumps(bounded(body))
            self._link.execute("insert into outbox values (?, ?, ?)", [seq, kind, text])
        self.on_tell()
        return seq

    def outbox(self, most: int = 32, most_bytes: int = 400_000) -> list[Told]:
        """What is to be told next, in order."""
        told: list[Told] = []
        size = 0
        for seq, kind, text in self._link.execute(
            "select seq, kind, body from outbox order by seq limit ?", [most]
        ):
            size += len(text)
            if told and size > most_bytes:
                break
            told.append(Told(seq, kind, json.loads(text)))
        return told

    def waiting(self) -> int:
        """How many frames are still to be told."""
        return int(self._link.execute("select count(*) from outbox").fetchone()[0])

    def told(self, received: int) -> None:
        """The server has everything up to `received`; delegations whose end it knows are forgotten."""
        with self.change():
            self._link.execute("delete from outbox where seq <= ?", [received])
            self._link.execute("delete from delegations where result_seq <= ?", [received])

    def agree(self, received: int) -> None:
        """What the server says at the begin of a connection. If it has heard more than was ever told, then what was told is not
        remembered here, and what is in the outbox gets numbers above that."""
        with self.change():
            if received <= self.fact("last"):
                return self.told(received)
            shift = received - self.oldest + 1
            for (seq,) in self._link.execute("select seq from outbox order by seq desc").fetchall():
                self._link.execute("update outbox set seq = ? where seq = ?", [seq + shift, seq])
            self._link.execute("update delegations set result_seq = result_seq + ?", [shift])
            self.note("last", max(received, self.fact("last") + shift))
        return None

    def delegations(self) -> list[Delegation]:
        """Everything that was taken and whose end the server does not know yet."""
        rows = self._link.execute(
            "select job, attempt, phase, offer, session_id, deadline from delegations order by rowid"
        )
        return [
            Delegation(job, attempt, phase, json.loads(offer), *rest)
            for job, attempt, phase, offer, *rest in rows
        ]

    def delegation(self, job: str) -> Delegation | None:
        return next((found for found in self.delegations() if found.job == job), None)

    def take(self, job: str, attempt: int, offer: dict[str, Any], deadline: float) -> None:
        """Keep a delegation, and tell that it is kept."""
        with self.change():
            self._link.execute(
                "insert or replace into delegations (job, attempt, phase, offer, session_id, deadline) values (?, ?, ?, ?, ?, ?)",
                [
                    job,
                    attempt,
                    ACCEPTED,
                    json.dumps(offer),
                    str(offer.get("resume_session_id") or ""),
                    deadline,
                ],
            )
            self.tell("accepted", job=job, attempt=attempt)

    def opened(self, delegation: Delegation, session_id: str, names: dict[str, str]) -> None:
        """The agent has a session for it now; nothing was asked of it yet, unless it was before."""
        phase = PROMPTED if delegation.phase == PROMPTED else OPENED
        with self.change():
            self._link.execute(
                "update delegations set session_id = ?, phase = ? where job = ? and attempt = ?",
                [session_id, phase, delegation.job, delegation.attempt],
            )
            self.tell(
                "session", job=delegation.job, attempt=delegation.attempt, session_id=session_id, **names
            )

    def prompted(self, delegation: Delegation) -> None:
        """The agent is asked now."""
        self._link.execute(
            "update delegations set phase = ? where job = ? and attempt = ?",
            [PROMPTED, delegation.job, delegation.attempt],
        )

    def ended(self, delegation: Delegation, **result: Any) -> None:
        """It has ended, and this is told. What is not the newest attempt has nothing to tell."""
        with self.change():
            current = self.delegation(delegation.job)
            if current is None or current.attempt != delegation.attempt or current.phase == ENDED:
                return
            seq = self.tell("result", job=delegation.job, attempt=delegation.attempt, **result)
            self._link.execute(
                "update delegations set phase = ?, offer = '{}', result_seq = ? where job = ?",
                [ENDED, seq, delegation.job],
            )

    def dropped(self, told: Told) -> None:
        """A frame that the server will never take is forgotten: its place is held by one that says nothing."""
        self._link.execute("update outbox set kind = 'nothing', body = '{}' where seq = ?", [told.seq])


def opened(file: Path) -> Journal:
    """The journal in this file. One that is broken is put aside and begun anew: the server offers again what it knew of."""
    try:
        journal = Journal(file)
        if journal.is_whole():
            return journal
        journal.close()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        pass
    aside = file.with_name(f"{file.name}.broken")
    file.replace(aside)
    for end in ("-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)
    trouble("journal_broken", kept=aside)
    return Journal(file)


async def until_written(write: Callable[[], object]) -> None:
    """Write something that must not be lost, again and again while there is no room for it."""
    while True:
        try:
            write()
            return
        except (OSError, sqlite3.Error) as error:
            trouble("not_written", error=type(error).__name__, again_in=f"{WRITE_PAUSE:g}s")
        await asyncio.sleep(WRITE_PAUSE)


def bounded(body: dict[str, Any]) -> dict[str, Any]:
    """The body with its longest texts cut, again and again, until it fits a frame."""
    body = dict(body)
    while len(json.dumps(body)) > FRAME_BYTES:
        name = max(
            (key for key in body if isinstance(body[key], str)), key=lambda key: len(body[key]), default=None
        )
        if name is None or len(body[name]) <= SHORT_CHARACTERS:
            return {key: value for key, value in body.items() if not isinstance(value, list | dict)}
        body[name] = body[name][: len(body[name]) // 2]
    return body
