"""A provider in a process of its own that answers every request after a fixed time, and costs next to nothing itself.

`python -m benchmarks.slow_provider BOXES MARKER SECONDS` prints its base URL, and serves until it is killed: a list in
pages, a look at a box, and stops. Every box is up, and has the name `MARKER`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CREATED = "2026-01-01T00:00:00.000000Z"


def box_id(number: int) -> str:
    """The provider's id of its box number `number`."""
    return f"bx_{number:08d}"


class SlowProvider:
    """Boxes by number, and the time that every answer takes."""

    def __init__(self, boxes: int, marker: str, seconds: float) -> None:
        self.boxes, self.marker, self.seconds = boxes, marker, seconds
        self.state: dict[str, str] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first = head.split(b" ", 2)
                await self._skip_body(reader, head)
                status, document = self.answer(first[0].decode(), first[1].decode())
                body = json.dumps(document).encode()
                await asyncio.sleep(self.seconds)
                writer.write(
                    b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    % (status, len(body))
                )
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _skip_body(self, reader: asyncio.StreamReader, head: bytes) -> None:
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.split(b":")[1]))

    def answer(self, method: str, target: str) -> tuple[int, dict[str, Any]]:
        """Status and body of one request."""
        parts = urlsplit(target)
        _, _, below = parts.path.partition("/boxes")
        if not below:
            return 200, self._page(dict(parse_qsl(parts.query)))
        name, _, action = below.strip("/").partition("/")
        if not name.removeprefix("bx_").isdigit():
            return 404, {"ok": False, "code": "not_found"}
        if method == "POST" and action == "stop":
            self.state[name] = "archiving"
        return (202 if method == "POST" else 200), {"ok": True, "box": self._box(name)}

    def _page(self, query: dict[str, str]) -> dict[str, Any]:
        start, limit = int(query.get("cursor", "0")), int(query.get("limit", "100"))
        end = min(start + limit, self.boxes)
        cursor = str(end) if end < self.boxes else None
        return {
            "ok": True,
            "type": "box.list",
            "boxes": [self._box(box_id(number)) for number in range(start, end)],
            "pageInfo": {"nextCursor": cursor, "hasMore": cursor is not None, "limit": limit},
        }

    def _box(self, name: str) -> dict[str, Any]:
        return {
            "id": name,
            "name": self.marker,
            "state": self.state.get(name, "ready"),
            "type": "default",
            "vcpu": 4,
            "memoryGB": 8,
            "billingMultiplier": 1,
            "url": f"https://{name}.example.test",
            "ip": "192.0.2.1",
            "subdomain": name,
            "createdAt": CREATED,
            "updatedAt": CREATED,
            "archiveAfter": None,
            "desktopAvailable": False,
            "desktopUrl": None,
            "snapshotAvailable": True,
            "snapshotCompletedAt": CREATED,
            "lastSnapshotStatus": "completed",
            "setupStatus": "done",
            "setupError": None,
            "environment": None,
        }


async def main(boxes: int, marker: str, seconds: float) -> None:
    provider = SlowProvider(boxes, marker, seconds)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
