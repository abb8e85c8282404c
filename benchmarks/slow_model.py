"""A model in a process of its own that takes a fixed time for every answer, and costs next to nothing itself.

`python -m benchmarks.slow_model CALLS SECONDS` prints its base URL, and serves the Responses API until it is killed: for each job
so many tool calls, then a report of some sentences, streamed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

REPORT = "Everything that was asked for was looked at and here is what came of it in plain words."
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class SlowModel:
    """How many calls a job makes, and the seconds to the first word of each answer."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.calls, self.seconds = calls, seconds

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = json.loads(await reader.readexactly(length_of(head)))
                await asyncio.sleep(self.seconds)
                writer.write(HEAD)
                for event in self.answer(body):
                    data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def answer(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The events of the next answer of a dialogue."""
        done = sum(item.get("type") == "function_call_output" for item in body["input"])
        usage = {"input_tokens": 500, "output_tokens": 50, "total_tokens": 550}
        ended = {"type": "response.completed", "response": {"id": f"r{done}", "usage": usage}}
        started = {"type": "response.created", "response": {"id": f"r{done}"}}
        if done < self.calls:
            call = {
                "type": "function_call",
                "id": f"f{done}",
                "call_id": f"c{done}",
                "name": "recall_messages",
            }
            return [
                started,
                {"type": "response.output_item.done", "item": call | {"arguments": '{"query": "plan"}'}},
                ended,
            ]
        text = [{"type": "response.output_text.delta", "delta": f"{word} "} for word in REPORT.split()]
        return [started, *text, ended]


def length_of(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


async def main(calls: int, seconds: float) -> None:
    server = await asyncio.start_server(SlowModel(calls, seconds).serve, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
