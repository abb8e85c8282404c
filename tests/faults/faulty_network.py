"""The way between the control plane and the provider, on which things go wrong: a proxy with faults drawn from a seed.

Only what a network or an overloaded provider can do is done here. An answer may be late, lost, cut off, replaced by an error,
or incomplete; a request may be lost, repeated, or arrive after the caller has gone. Nothing lies: a 404 or a state that is
shown is the provider's own.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import random
import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

LONGEST_HEAD = 64 * 1024
LATE_SECONDS = (0.2, 7.0)  # the longest is beyond what an interactive call waits
ERRORS_BEFORE = (429, 500, 502, 503, 503)
ERRORS_AFTER = (500, 502, 503, 504)


class Fault(StrEnum):
    """What may become of one request. The words say what its sender sees, and what the provider saw of it."""

    LATE = "answered late"
    TWICE = "arrives twice"
    ERROR_UNSEEN = "error instead of the request"
    ERROR_DONE = "error instead of the answer"
    DROPPED_UNSEEN = "connection dropped before the request arrived"
    DROPPED_DONE = "connection dropped before the answer"
    CUT = "connection dropped within the answer"
    AFTERWARDS = "connection dropped, and the request arrives later"
    PARTIAL = "a part of a list"


WEIGHTS = {
    Fault.LATE: 4,
    Fault.TWICE: 3,
    Fault.ERROR_UNSEEN: 2,
    Fault.ERROR_DONE: 2,
    Fault.DROPPED_UNSEEN: 2,
    Fault.DROPPED_DONE: 3,
    Fault.CUT: 2,
    Fault.AFTERWARDS: 3,
    Fault.PARTIAL: 4,
}


@dataclass(frozen=True)
class Message:
    """A request or an answer: its first line and headers as they came, and its body."""

    head: bytes
    body: bytes

    @property
    def words(self) -> list[str]:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)

    @property
    def is_listing(self) -> bool:
        """Whether it asks for a list of boxes."""
        return self.words[0] == "GET" and urlsplit(self.words[1]).path.endswith("/boxes")


class FaultyNetwork:
    """A proxy before `upstream`. As a context manager it serves in a thread of its own until it is left."""

    def __init__(self, upstream: str, rng: random.Random) -> None:
        self._upstream, self._rng = urlsplit(upstream), rng
        self.rate = 0.0
        """The share of requests that a fault befalls."""
        self.counts: collections.Counter[Fault] = collections.Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._held: set[asyncio.Task[Any]] = set()
        """Of a task whose client has left, and that waits for the provider, the loop itself has no reference that lasts."""

    @property
    def base_url(self) -> str:
        """Where the provider's API is, this way."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._upstream.path}"

    def __enter__(self) -> FaultyNetwork:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(30)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _open(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST_HEAD)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        while others := await self._others():
            for task in others:
                task.cancel()
            await asyncio.wait(others)

    async def _others(self) -> set[asyncio.Task[Any]]:
        """Every other task, each of which has begun: one that is cancelled before closes nothing."""
        await asyncio.sleep(0)
        here = asyncio.current_task()
        return {task for task in asyncio.all_tasks() if task is not here}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, request after request, until either side leaves or a fault ends it."""
        self._hold(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while request := await _read(reader):
                answer = await self._answer(request)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if not _is_whole(answer):
                    break
        await _closed(writer)

    async def _answer(self, request: Message) -> bytes | None:
        """The bytes to send back; None: the connection is dropped."""
        fault = self._draw(request)
        match fault:
            case Fault.ERROR_UNSEEN:
                return self._error(ERRORS_BEFORE)
            case Fault.DROPPED_UNSEEN:
                return None
            case Fault.AFTERWARDS:
                task = asyncio.create_task(self._deliver_later(request, self._rng.uniform(0.5, 8.0)))
                self._hold(task)
                return None
            case Fault.TWICE:
                await self._forward(request)
        answer = await self._forward(request)
        if answer is None:
            return None
        match fault:
            case Fault.LATE:
                await asyncio.sleep(self._rng.uniform(*LATE_SECONDS))
            case Fault.ERROR_DONE:
                return self._error(ERRORS_AFTER)
            case Fault.DROPPED_DONE:
                return None
            case Fault.CUT:
                return _sent(answer)[: -max(1, len(answer.body) // 2)]
            case Fault.PARTIAL:
                return _sent(self._part_of(answer))
        return _sent(answer)

    def _draw(self, request: Message) -> Fault | None:
        if self._rng.random() >= self.rate:
            return None
        weights = {
            fault: weight for fault, weight in WEIGHTS.items() if fault != Fault.PARTIAL or request.is_listing
        }
        fault = self._rng.choices(list(weights), weights=list(weights.values()))[0]
        self.counts[fault] += 1
        return fault

    def _hold(self, task: asyncio.Task[Any] | None) -> None:
        assert task is not None
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def _deliver_later(self, request: Message, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._forward(request)

    async def _forward(self, request: Message) -> Message | None:
        """The provider's answer; None if there is no provider, or it died over it."""
        try:
            reader, writer = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        except OSError:
            return None
        try:
            writer.write(_with_header(request.head, b"Connection: close") + request.body)
            await writer.drain()
            return await _read(reader)
        except (OSError, asyncio.IncompleteReadError):
            return None
        finally:
            await _closed(writer)

    def _error(self, statuses: tuple[int, ...]) -> bytes:
        status = self._rng.choice(statuses)
        wait = b"Retry-After: 1\r\n" if status in {429, 503} and self._rng.random() < 0.5 else b""
        body = b'{"ok": false, "message": "not now"}'
        head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
        return head % (status, wait, len(body)) + body

    def _part_of(self, answer: Message) -> Message:
        """The page without some of its boxes, or without its end, as a provider that is restarting may give it."""
        try:
            page = json.loads(answer.body)
        except ValueError:
            return answer
        if not isinstance(page, dict) or not isinstance(page.get("boxes"), list):
            return answer
        page["boxes"] = [box for box in page["boxes"] if self._rng.random() < 0.7]
        return Message(answer.head, json.dumps(page).encode())


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close it to the end: what the loop is stopped over would be found by another test."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Message | None:
    """The next message; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise
        return None
    length = _header(head, b"content-length")
    if length is None and _header(head, b"transfer-encoding") is not None:
        return Message(head, await _unchunked(reader))
    return Message(head, await reader.readexactly(int(length or 0)))


async def _unchunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return body


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return None


def _with_header(head: bytes, *added: bytes) -> bytes:
    """The head with these headers in place of its own of the same names."""
    names = {line.split(b":")[0].lower() for line in added}
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if line.split(b":")[0].strip().lower() not in names]
    return b"\r\n".join([first, *kept, *added]) + b"\r\n\r\n"


def _sent(answer: Message) -> bytes:
    head = b"\r\n".join(
        line
        for line in answer.head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        if not line.lower().startswith((b"connection:", b"transfer-encoding:"))
    )
    return _with_header(head + b"\r\n\r\n", b"Content-Length: %d" % len(answer.body)) + answer.body


def _is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    return _header(head + b"\r\n\r\n", b"content-length") == b"%d" % len(body)
