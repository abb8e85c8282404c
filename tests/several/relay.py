"""A road to a server that can be cut: what is on it is held up then, and no end of it is told."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from dataclasses import dataclass, field

REQUEST = re.compile(rb"(GET|POST|PATCH|PUT|DELETE) (\S+) HTTP/1\.1\r\n")
PIECE = 64 * 1024


@dataclass
class Relay:
    """Listens on `address` and passes everything on to `target`: a (host, port), or the path of a unix socket.

    `requests` are the request lines of HTTP that went towards the target, as (method, path).
    """

    address: str
    target: tuple[str, int] | str
    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._ready = threading.Event()
        self._writers: list[asyncio.StreamWriter] = []
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._open.clear)

    def mend(self) -> None:
        """What was held up goes on its way."""
        self._loop.call_soon_threadsafe(self._open.set)

    def __enter__(self) -> Relay:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._passed_on, self.address, self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        self._open.set()
        await asyncio.sleep(0)  # who is just let in comes in
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for writer in self._writers:
                writer.close()
            await asyncio.wait(others)
        for (
            writer
        ) in self._writers:  # to the end: what the loop is stopped over would be found by another test
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _passed_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            there = (
                await asyncio.open_unix_connection(self.target)
                if isinstance(self.target, str)
                else await asyncio.open_connection(*self.target)
            )
        except OSError:
            writer.close()
            return
        self._writers += [writer, there[1]]
        await asyncio.gather(
            self._pump(reader, there[1], counted=True), self._pump(there[0], writer), return_exceptions=True
        )

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        try:
            while piece := await reader.read(PIECE):
                await self._open.wait()
                if counted:
                    self.requests += [(m[1].decode(), m[2].decode()) for m in REQUEST.finditer(piece)]
                writer.write(piece)
                await writer.drain()
        finally:
            await self._open.wait()
            writer.close()
