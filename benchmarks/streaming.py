"""Streaming: five hundred viewers of running commands on one web process, beside as many that ask once a second.

Every command prints the time each second, so a viewer sees how old what it reads is. `BENCH_VIEWERS` and `BENCH_RUNS`
change the numbers (500 viewers of 20 runs).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import psycopg

from base.embedded_postgres import Connection
from benchmarks.house import house, owners, say
from benchmarks.observing import Cost, Looker, cost_of
from benchmarks.results import Row, quantile, report
from tests.faults.installation import Api, Installation, Owner
from tests.waiting import eventually

VIEWERS = int(os.environ.get("BENCH_VIEWERS", "500"))
RUNS = int(os.environ.get("BENCH_RUNS", "20"))
CONNECT_SECONDS = 60.0  # for all viewers together; who has had no answer by then is counted as that
SETTLE_SECONDS = 5.0
WINDOW_SECONDS = 20.0
POLL_SECONDS = 1.0
PRINTS = 'while :; do printf "at %s.\\n" "$EPOCHREALTIME"; sleep 1; done'
PRINTED = re.compile(r"at (\d+\.\d+)\.")
CONNECT_AT_ONCE = 25


@dataclass
class Seen:
    """What the viewers saw: for each line in the window, how old it was. `counting` is when the window is open.

    Viewers come through a door, a few at a time, and hold it until they have their first answer.
    """

    door: asyncio.Semaphore
    ages: list[float] = field(default_factory=list)
    connected: int = 0
    refused: int = 0  # answers other than 200
    counting: bool = False

    def is_in(self) -> None:
        self.connected += 1
        self.door.release()

    def take(self, text: str) -> None:
        if self.counting:
            now = time.time()
            self.ages += [now - float(printed) for printed in PRINTED.findall(text)]


Viewer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, "Watched", Seen], Awaitable[None]]


@dataclass(frozen=True)
class Watched:
    """One running command, and the head of every request about it."""

    run_id: str
    token: str

    def request(self, path: str) -> bytes:
        head = f"GET /api/v1/runs/{self.run_id}/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        return (head + f"Authorization: Bearer {self.token}\r\n\r\n").encode()


class Connections(Looker):
    """The most connections to the database that there were at once, without this one."""

    def __init__(self, database: Connection) -> None:
        super().__init__(database)
        self.most = 0

    def look(self) -> None:
        row = self.link.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            " and backend_type = 'client backend'"
        ).fetchone()
        assert row is not None
        self.most = max(self.most, row[0])


def main(*, json: bool) -> None:
    with house() as made:
        web, _ = made.add_web(), made.add_worker()
        made.await_web()
        say(f"{RUNS} boxes")
        watched = [started(made, owner) for owner in owners(RUNS)]
        eventually(lambda: running(made.database) == RUNS)
        streamed = measured(made, web.pid, watched, stream)
        polled = measured(made, web.pid, watched, poll)
    report("streaming", rows_of(*streamed, *polled), as_json=json)


def started(made: Installation, owner: Owner) -> Watched:
    api = Api(made.url, owner.token)
    body = {"box": owner.boxes[0][0], "command": PRINTS, "idempotency_key": str(uuid.uuid4())}
    return Watched(api.insist("POST", "runs", json=body)["id"], owner.token)


def running(database: Connection) -> int:
    with psycopg.connect(**database.parameters()) as link:
        row = link.execute("select count(*) from box_runs where state = 'running'").fetchone()
        assert row is not None
        return int(row[0])


Measured = tuple[Seen, Cost, int]


def measured(made: Installation, web: int, watched: Sequence[Watched], viewer: Viewer) -> Measured:
    """What the viewers saw in a window, what web took for it, and how many connections to the database there were."""
    say(f"{VIEWERS} viewers: {viewer.__name__}")
    with Connections(made.database) as connections:
        seen, cost = asyncio.run(_watch(made, web, watched, viewer))
    say(
        f"  p95 {quantile(seen.ages, 0.95):.3f} s, {len(seen.ages) / WINDOW_SECONDS:.0f} lines/s, {cost}, {connections.most} connections"
    )
    return seen, cost, connections.most


async def _watch(
    made: Installation, web: int, watched: Sequence[Watched], viewer: Viewer
) -> tuple[Seen, Cost]:
    seen = Seen(asyncio.Semaphore(CONNECT_AT_ONCE))
    tasks = [
        asyncio.create_task(_view(made.port, watched[n % len(watched)], viewer, seen)) for n in range(VIEWERS)
    ]
    given_up = time.monotonic() + CONNECT_SECONDS
    while seen.connected < VIEWERS and time.monotonic() < given_up:
        assert not (over := [task for task in tasks if task.done()]), over[0].exception()
        await asyncio.sleep(0.1)
    await asyncio.sleep(SETTLE_SECONDS)
    seen.counting = True
    with cost_of(web) as cost:
        await asyncio.sleep(WINDOW_SECONDS)
    seen.counting = False
    broken = [task.exception() for task in tasks if task.done()]
    assert not broken, broken[0]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seen, cost


async def _view(port: int, watched: Watched, viewer: Viewer, seen: Seen) -> None:
    await seen.door.acquire()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    try:
        await viewer(reader, writer, watched, seen)
    finally:
        writer.close()


async def stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watched: Watched, seen: Seen
) -> None:
    """Server-sent events, to the end of the window."""
    writer.write(watched.request("stream"))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    seen.is_in()
    while line := await reader.readline():
        seen.take(line.decode())
    raise AssertionError("the stream ended")


async def poll(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watched: Watched, seen: Seen
) -> None:
    """Asks for the output from where it stands, a second after each answer."""
    offset, is_first = 0, True
    while True:
        writer.write(watched.request(f"output?offset={offset}"))
        head = await reader.readuntil(b"\r\n\r\n")
        size = re.search(rb"(?i)content-length: (\d+)", head)
        assert size, head
        body = json.loads(await reader.readexactly(int(size[1])))
        if not head.startswith(b"HTTP/1.1 200"):
            seen.refused += 1
            await asyncio.sleep(POLL_SECONDS)
            continue
        offset = body["next_offset"]
        seen.take(body["output"])
        if is_first:
            seen.is_in()
            is_first = False
        await asyncio.sleep(POLL_SECONDS)


def rows_of(
    seen: Seen, cost: Cost, connections: int, polled: Seen, poll_cost: Cost, poll_connections: int
) -> list[Row]:
    def age(share: float) -> tuple[float, float]:
        return 1000 * quantile(seen.ages, share), 1000 * quantile(polled.ages, share)

    what = f"{VIEWERS} viewers of {RUNS} runs"
    return [
        Row(f"{what}: served at all", seen.connected, "", polled.connected, f"{VIEWERS}"),
        Row(f"{what}: database connections, worker included", connections, "", float(poll_connections), "far below one a viewer"),
        Row(f"{what}: printed to seen, p50", age(0.5)[0], "ms", age(0.5)[1]),
        Row(f"{what}: printed to seen, p95", age(0.95)[0], "ms", age(0.95)[1]),
        Row(f"{what}: lines seen", len(seen.ages) / WINDOW_SECONDS, "/s", len(polled.ages) / WINDOW_SECONDS, f"{VIEWERS}"),
        Row(f"{what}: requests that failed", seen.refused, "", polled.refused, "none"),
        Row(f"{what}: web CPU of one core", cost.cpu, "%", poll_cost.cpu),
        Row(f"{what}: web memory", cost.rss, "MiB", poll_cost.rss),
    ]  # fmt: skip
