"""One question to a supervisor and its answer, without a thread for those that wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .interface import RuntimeFault, SupervisorRecord
from .supervisor.wire import BrokenFrameError, Decoder, encode

_CHUNK = 1 << 18
_MAX_FILES = 4
_LONGEST_PATH = 100  # of the 107 bytes that a socket's address may have
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class Answer:
    """What a supervisor said. `files` are open descriptors that the receiver closes."""

    header: dict[str, Any]
    body: bytes = b""
    files: list[int] = field(default_factory=list)


async def ask(
    record: SupervisorRecord,
    header: Mapping[str, object],
    body: bytes = b"",
    *,
    seconds: float,
    files: tuple[int, ...] = (),
) -> Answer:
    """Send one request and wait at most `seconds` for the answer.

    Raises `RuntimeFault`: the supervisor's own, or `box_direct_failed` if it cannot be reached or does not answer.
    """
    try:
        async with asyncio.timeout(seconds), _connected(record) as peer:
            await _send(peer, encode(dict(header), body), files)
            answer = await _receive(peer)
    except TimeoutError as error:
        raise RuntimeFault("box_direct_failed", "the box did not answer in time") from error
    except (OSError, BrokenFrameError) as error:
        raise RuntimeFault("box_direct_failed", f"the box does not answer: {error}") from error
    if "code" in answer.header:
        raise RuntimeFault(str(answer.header["code"]), str(answer.header["message"]))
    return answer


@contextlib.asynccontextmanager
async def _connected(record: SupervisorRecord) -> AsyncIterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.setblocking(False)
        with _short(Path(record.socket)) as address:
            await asyncio.get_running_loop().sock_connect(peer, address)
        _check_identity(peer, record)
        yield peer


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """An address that fits: a long path is reached through its opened folder."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _check_identity(peer: socket.socket, record: SupervisorRecord) -> None:
    """Whoever listens must be the process on record: a box could put a socket of its own in the place."""
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if pid != record.pid or uid != os.geteuid():
        raise ConnectionError("another process listens in the supervisor's place")


async def _send(peer: socket.socket, data: bytes, files: tuple[int, ...]) -> None:
    if files:
        sent = socket.send_fds(peer, [data[:_CHUNK]], list(files))  # a fresh connection has room for it
        data = data[sent:]
    if data:
        await asyncio.get_running_loop().sock_sendall(peer, data)


async def _receive(peer: socket.socket) -> Answer:
    decoder, files = Decoder(), list[int]()
    try:
        while True:
            await _readable(peer)
            data, received, _, _ = socket.recv_fds(peer, _CHUNK, _MAX_FILES)
            files += received
            if not data:
                raise ConnectionError("the supervisor ended")
            frame = decoder.feed(data)
            if frame is not None:
                return Answer(frame[0], frame[1], files)
    except BaseException:
        for fd in files:
            os.close(fd)
        raise


async def _readable(peer: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(peer.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(peer.fileno())
