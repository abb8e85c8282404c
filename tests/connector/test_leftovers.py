"""What a connector that was killed has left running is ended before anything is told of its delegation, whatever that is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.delegating import Delegations
from connector.journal import ENDED, Journal
from connector.places import Pairing, Places
from connector.processes import MARK

JOB = str(uuid.uuid4())
AGENT = {"sleeps": ["sleep", "600"]}


@pytest.fixture
def left() -> Iterator[subprocess.Popen[bytes]]:
    """An agent of the life before."""
    process = subprocess.Popen(["sleep", "600"], env=os.environ | {MARK: JOB}, start_new_session=True)
    yield process
    process.kill()
    process.wait(30)


@pytest.fixture
def delegations(tmp_path: Path) -> Iterator[Delegations]:
    places = Places(tmp_path / "state")
    places.prepare()
    journal = Journal(places.journal_file)
    pairing = Pairing(
        "http://127.0.0.1:9", "machine", "name", "shell", "token", [str(tmp_path.resolve())], AGENT
    )
    yield Delegations(pairing, places, journal)
    journal.close()


@pytest.mark.parametrize(
    ("agent", "folder", "seconds", "status"),
    [("sleeps", "", -1, "timeout"), ("sleeps", "gone", 60, "refused"), ("gone", "", 60, "unavailable")],
    ids=["its time is over", "its folder is gone", "its agent is gone"],
)
def test_it_is_ended_also_where_nothing_is_gone_on_with(
    delegations: Delegations, left: subprocess.Popen[bytes], tmp_path: Path, agent: str, folder: str, seconds: float, status: str
) -> None:  # fmt: skip
    offer = {"agent_id": agent, "prompt": "x", "cwd": str(tmp_path.resolve() / folder), "authority": {"tier": "shell", "roots": [str(tmp_path.resolve())]}}  # fmt: skip
    delegations.journal.take(JOB, 1, offer, time.time() + seconds)

    asyncio.run(_all_of(delegations))

    assert left.wait(30) < 0
    assert _told(delegations) == [status]


def test_it_is_ended_also_where_the_delegation_is_cancelled_while_it_waits_for_room(
    delegations: Delegations, left: subprocess.Popen[bytes]
) -> None:
    delegations.journal.take(JOB, 1, {"agent_id": "sleeps", "prompt": "x", "cwd": "/"}, time.time() + 60)

    asyncio.run(_cancelled(delegations))

    assert left.wait(30) < 0
    assert _told(delegations) == ["cancelled"]


async def _all_of(delegations: Delegations) -> None:
    delegations.resume()
    await asyncio.wait_for(asyncio.gather(*delegations._tasks.values()), 60)


async def _cancelled(delegations: Delegations) -> None:
    delegations._room = asyncio.Semaphore(0)
    delegations.resume()
    tasks = list(delegations._tasks.values())
    await asyncio.sleep(0)  # it begins, and waits for room

    delegations.cancel(JOB, "owner")

    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)


def _told(delegations: Delegations) -> list[str]:
    assert [found.phase for found in delegations.journal.delegations()] == [ENDED]
    return [frame.body["status"] for frame in delegations.journal.outbox() if "status" in frame.body]
