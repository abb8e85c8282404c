"""The plain way to do jobs: a thread for each, a loop over the model's answers, and everything in memory.

`python -m benchmarks.baseline.plain_loop JOBS THREADS BASE_URL` prints the seconds that all of them took. Nothing is kept, nothing
can be taken up again, and nobody can look on: this is what the ledger costs beside.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from openai import OpenAI

TOOL: dict[str, Any] = {
    "type": "function",
    "name": "recall_messages",
    "description": "Search what was said.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    "strict": False,
}


def job(client: OpenAI) -> str:
    dialogue: list[Any] = [{"role": "user", "content": "look through the plan"}]
    while True:
        text, call = answer(client, dialogue)
        if call is None:
            return text
        dialogue += [
            call,
            {"type": "function_call_output", "call_id": call["call_id"], "output": '{"matches": []}'},
        ]


def answer(client: Any, dialogue: list[Any]) -> tuple[str, Any]:
    text, call = "", None
    with client.responses.create(model="slow", input=dialogue, tools=[TOOL], stream=True) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "response.output_item.done":
                item = event.item
                call = {
                    "type": "function_call",
                    "call_id": item.call_id,
                    "name": item.name,
                    "arguments": item.arguments,
                }
    return text, call


def main(jobs: int, threads: int, base_url: str) -> None:
    client = OpenAI(api_key="none", base_url=base_url, max_retries=0)
    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        reports = list(pool.map(lambda _: job(client), range(jobs)))
    assert all(reports)
    print(time.monotonic() - started, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
