"""Runs as they were driven first: a process of its own for each run, that dispatches it and then looks every second.

    python -m benchmarks.baseline.fixed_polls < runs.json

`runs.json` is a list of [conversation, box, command]. All are started at once, and each start is printed as the JSON
object {"run", "accepted"} on a line. A poll that comes later than its second counts as late; the worst is printed at the
end, {"worst_late", "requests"}, once every run has ended or standard input was closed by a signal.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from typing import Any

import django

POLL_SECONDS = 1.0
POLL_BYTES = 256 * 1024


class Process(threading.Thread):
    """One run's own process. Its mailbox is a timer."""

    requests = 0
    worst_late = 0.0

    def __init__(self, conversation: str, box: str, command: str) -> None:
        super().__init__(daemon=True)
        self.conversation, self.box, self.command = conversation, box, command

    def run(self) -> None:
        from django.db import connection

        from runs.services import start_run

        run = start_run(
            uuid.UUID(self.conversation),
            self.box,
            {"type": "user", "id": "baseline"},
            self.command,
            str(uuid.uuid4()),
        )
        print(json.dumps({"run": str(run.pk), "accepted": time.time()}), flush=True)
        try:
            self.dispatch(run)
            while not self.is_over(run):
                self.sleep()
        finally:
            connection.close()

    def sleep(self) -> None:
        due = time.monotonic() + POLL_SECONDS
        time.sleep(POLL_SECONDS)
        Process.worst_late = max(Process.worst_late, time.monotonic() - due)

    def dispatch(self, run: Any) -> None:
        from django.utils import timezone

        from runs.models import Run
        from runs.replies import parse_dispatch
        from runs.scripts import dispatch_script

        row = Run.objects.filter(pk=run.pk)
        row.update(dispatch_attempted_at=timezone.now())
        reply = parse_dispatch(
            self.ask(run, dispatch_script(run.run_directory, run.command, credential=None), 30)
        )
        row.update(state="dispatched", pid=reply.pid, dispatched_at=timezone.now(), started_at=timezone.now())

    def is_over(self, run: Any) -> bool:
        from runs.models import Run
        from runs.replies import parse_poll
        from runs.scripts import poll_script
        from runs.services import finish, record_poll

        offset = Run.objects.values_list("received_offset", flat=True).get(pk=run.pk)
        answer = self.ask(run, poll_script(run.run_directory, offset=offset, max_bytes=POLL_BYTES), 10)
        record_poll(run.pk, answer)
        end = parse_poll(answer, offset=offset).exit
        if end is None:
            return False
        finish(run.pk, "completed" if end.status == 0 else "failed", end.status)
        return True

    def ask(self, run: Any, script: str, seconds: int) -> dict[str, Any]:
        from boxes.client import client

        Process.requests += 1
        result = client().command(run.conversation_box.box_id, script, seconds)
        return {"stdout": result.stdout}


def main() -> None:
    django.setup()
    processes = [Process(*wanted) for wanted in json.loads(sys.stdin.read())]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(json.dumps({"worst_late": Process.worst_late, "requests": Process.requests}), flush=True)


if __name__ == "__main__":
    main()
