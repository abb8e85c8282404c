"""What an agent leaves behind is found and ended, whatever it did to get away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from connector import processes
from connector.keeper import KEEPS
from connector.kept import Kept, NotStarted, start
from connector.processes import MARK, Root, end_all, to_its_end
from tests.connector.conftest import lives
from tests.waiting import eventually

LOST = "env -i setsid sh -c '{first}echo $$ > pid; while :; do sleep 600; done' &"
"""Clears its surroundings and leaves its session; with the shell that started it, it loses its parent too."""
WANDERER = """
import os, time
if os.fork():
    time.sleep(600)
os.setsid()
open("pid", "w").write("gone")
while not os.fork():
    pass
"""
"""Leaves its session and its parent, and is from then on another process all the time, which no look at the table of processes finds."""
AWAITED = "until [ -s pid ]; do sleep 0.01; done"


async def started(folder: Path, job: str, command: list[str]) -> Kept:
    return await start(command, folder, os.environ | {MARK: job, KEEPS: job}, 1 << 20)


def written(file: Path) -> str:
    """What is in it; a shell makes a file before it writes into it."""
    return file.read_text() if file.exists() else ""


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


@pytest.mark.parametrize("agent_ends", [False, True])
@pytest.mark.parametrize("same_life", [True, False])
def test_it_ends_what_has_no_mark_no_session_and_no_parent(
    tmp_path: Path, agent_ends: bool, same_life: bool
) -> None:
    job, vanish = str(uuid.uuid4()), f"({LOST.format(first='')}); {AWAITED}"

    async def test() -> None:
        kept = await started(tmp_path, job, ["sh", "-c", vanish + ("" if agent_ends else "; sleep 600")])
        await kept.await_start()
        await asyncio.to_thread(eventually, lambda: written(tmp_path / "pid"))
        if agent_ends:
            assert await kept.end() == "exit code 0"
        vanished = int((tmp_path / "pid").read_text())
        assert lives(vanished)

        await end_all(job, *(kept.roots if same_life else ()))

        await kept.process.wait()
        assert not lives(vanished)

    run(test())


def test_one_that_was_seen_is_ended_also_when_it_could_not_be_found_again(tmp_path: Path) -> None:
    job = str(uuid.uuid4())
    shell = f"{LOST.format(first='trap : TERM; ')} {AWAITED}; sleep 600"
    agent = subprocess.Popen(["sh", "-c", shell], cwd=tmp_path, env=os.environ | {MARK: job})
    eventually(lambda: written(tmp_path / "pid"))

    asyncio.run(end_all(job))

    agent.wait(30)
    assert not lives(int((tmp_path / "pid").read_text()))


def test_it_ends_what_forks_faster_than_anybody_looks(tmp_path: Path) -> None:
    job = str(uuid.uuid4())

    async def test() -> None:
        kept = await started(tmp_path, job, [sys.executable, "-I", "-S", "-c", WANDERER])
        await asyncio.to_thread(eventually, (tmp_path / "pid").exists)

        await end_all(job, *kept.roots)

        assert await kept.process.wait() == 0  # by itself: nothing is left that could come back to it

    run(test())


def test_one_that_got_the_number_of_an_agent_is_left_alone() -> None:
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    now, before = Root.of(other.pid), Root.of(other.pid)
    assert now is not None
    assert before is not None
    before.process._ident = (other.pid, 0)  # one that was started at another time

    asyncio.run(end_all("job", before))
    assert lives(other.pid)

    asyncio.run(end_all("job", now))
    assert other.wait(30) < 0


def test_it_is_ended_whoever_is_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def end(job: str, *_: Root) -> int:
        begun.set()
        await may_end.wait()
        ended.append(job)
        return 1

    async def test() -> None:
        task = asyncio.create_task(to_its_end("job"))
        await begun.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(processes, "end_all", end)
    run(test())
    assert ended == ["job"]


def test_the_keeper_tells_how_the_agent_ended_and_goes_with_it(tmp_path: Path) -> None:
    async def test() -> None:
        kept = await started(tmp_path, "job", ["sh", "-c", "cat; echo $0$OPENAGENTS_KEEPS; exit 3", "said"])
        pid = await kept.await_start()
        assert kept.process.stdin is not None
        assert kept.process.stdout is not None
        kept.process.stdin.write_eof()

        assert await kept.process.stdout.read() == b"said\n"
        assert (await kept.end(), await kept.process.wait(), lives(pid)) == ("exit code 3", 0, False)

    run(test())


def test_the_conversation_ends_with_the_agent_though_something_of_it_lives_on(tmp_path: Path) -> None:
    job = str(uuid.uuid4())

    async def test() -> None:
        kept = await started(tmp_path, job, ["sh", "-c", "sleep 600 > /dev/null & echo $! > pid"])
        assert kept.process.stdout is not None

        assert await kept.process.stdout.read() == b""
        assert lives(int((tmp_path / "pid").read_text()))
        await end_all(job, *kept.roots)

    run(test())


def test_an_agent_that_cannot_be_started_is_said_to_be_that(tmp_path: Path) -> None:
    async def test() -> None:
        kept = await started(tmp_path, "job", [str(tmp_path / "none")])

        with pytest.raises(NotStarted, match="No such file"):
            await kept.await_start()
        await kept.process.wait()

    run(test())
