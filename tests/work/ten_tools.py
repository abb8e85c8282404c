"""Workers that die at a chosen moment of a job of ten tool calls; for tests that kill them.

`python -m tests.work.ten_tools`, with the product's settings in the environment, reads lines `JOB POINT TIMES` and answers each
with a line of JSON once a worker for that job has ended: it is killed with -9 when it meets the fault point for the
so-manieth time (`- 0`: it is not killed). A worker is a process of its own, split off before anything is opened.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import django

CALLS = 10
CHUNK = "Step {} of the work. "
REPORT = "All ten are done."


def main() -> None:
    django.setup()
    import work.deep_work.driver
    import work.worker  # noqa: F401 - imported once, for every worker

    for line in sys.stdin:
        job, point, times, effects = line.split()
        pid = os.fork()
        if pid == 0:
            worker(UUID(job), point, int(times), Path(effects))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(
            json.dumps({"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "exit": status}),
            flush=True,
        )


def worker(job_id: UUID, point: str, times: int, effects: Path) -> None:
    from base import faults, leases, notify
    from base.pump import Holder
    from work.worker import drive

    if times:
        faults._armed[point] = killing_at(times)
    link = notify.own_connection()
    holder = Holder(leases.new_worker(link))
    drive(job_id, client=TenCalls(), registry=tools(effects), holder=holder)


def killing_at(times: int) -> Callable[[], None]:
    met = 0

    def meet() -> None:
        nonlocal met
        met += 1
        if met == times:
            os.kill(os.getpid(), signal.SIGKILL)

    return meet


class TenCalls:
    """Says a sentence and calls the next tool; what is next follows from the dialogue, as for a real model."""

    def stream(self, request: Any) -> Any:
        from work.model_client import Call, CallWritten, Done, Started, Text

        done = sum(isinstance(item, Call) for item in request.items)
        yield Started("resp")
        if done < CALLS:
            for word in CHUNK.format(done).split(" ")[:-1]:
                yield Text(f"{word} ")
            yield CallWritten(
                f"call-{done}", "safe" if done % 2 else "unsafe", json.dumps({"query": str(done)})
            )
        else:
            yield Text(REPORT)
        yield Done("resp", {"input_tokens": 1, "output_tokens": 1})


def tools(effects: Path) -> Any:
    from tests.work.scripted import tool
    from work.tools import Registry

    def write(call: Any) -> dict[str, str]:
        with effects.open("a") as file:
            file.write(f"{call.arguments['query']}\n")
        return {"wrote": call.arguments["query"]}

    return Registry([tool("unsafe", write), tool("safe", write, safe_to_repeat=True)])


if __name__ == "__main__":
    main()
