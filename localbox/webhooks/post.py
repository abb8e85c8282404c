"""One HTTP POST to a checked address, with one deadline over all of it. Redirects are answers, not instructions."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache

import h11

from .targets import Target, resolve

TIMEOUT_SECONDS = 5.0

Headers = list[tuple[str, str]]


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def post(target: Target, headers: Headers, body: bytes, *, loopback: bool) -> int:
    """The status that came back. Raises RefusedTargetError, OSError (ssl errors too), TimeoutError, h11.ProtocolError."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        address = await resolve(target, loopback=loopback)
        reader, writer = await asyncio.open_connection(
            address,
            target.port,
            ssl=_tls() if target.secure else None,
            server_hostname=target.host if target.secure else None,
        )
        try:
            return await _exchange(reader, writer, target, headers, body)
        finally:
            writer.transport.abort()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target, headers: Headers, body: bytes
) -> int:
    connection = h11.Connection(h11.CLIENT)
    framing = [("Host", target.authority), ("Content-Length", str(len(body))), ("Connection", "close")]
    request = h11.Request(method="POST", target=target.path, headers=framing + headers)
    for part in (request, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(connection.send(part) or b"")
    await writer.drain()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Response):
            return int(event.status_code)
        elif not isinstance(event, h11.InformationalResponse):
            raise h11.RemoteProtocolError("the connection ended without an answer")
