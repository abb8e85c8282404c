"""Lists and details of the API beside a million rows: 95 of 100 answers within three times what they take beside none.

The requests go through the whole of Django in this process, without a network between. Two callers: one who owns the million,
and one who owns twenty among a million of others, which is where a list by date alone would look at all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from benchmarks.database import throwaway_database, without_indexes
from benchmarks.results import Row, quantile, report

ROWS = 1_000_000
OWN = 20
REQUESTS = 100
P95 = 0.95
TARGET = "at most 3 x the baseline"


def main(*, json: bool) -> None:
    """Measure and print."""
    with throwaway_database():
        rows = list(_measured())
    report("api", rows, as_json=json)


def _measured() -> Iterator[Row]:
    from django.test.utils import setup_test_environment

    setup_test_environment()  # the test client's host is let in
    small, large = _Caller("small"), _Caller("large")
    templates = {caller.name: caller.own_rows(OWN) for caller in (small, large)}
    _analyze()
    for path in small.paths():
        small.p95(path)  # what a process takes until it is warm is nobody's figure
    baseline = {path: small.p95(path) for path in small.paths()}
    _fill(templates["large"])
    for caller, whose in ((small, f"{OWN} own rows among {ROWS:,}"), (large, f"{ROWS:,} own rows")):
        for plain, path in zip(small.paths(), caller.paths(), strict=True):
            yield Row(f"{_title(plain)}: {whose}", caller.p95(path), "ms", baseline[plain], TARGET)


class _Caller:
    """An owner with a token and some rows of each kind."""

    def __init__(self, name: str) -> None:
        from rest_framework.test import APIClient

        from accounts.models import User
        from accounts.services import create_token
        from conversations.services import ensure_conversation

        self.name = name
        self.user = User.objects.create_user(username=name, slug=name)
        self.conversation = ensure_conversation(self.user)
        self.client = APIClient()
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(self.user)[1]}")

    def own_rows(self, number: int) -> dict[str, Any]:
        """Makes so many boxes, runs and jobs that have ended; one of each is returned."""
        for count in range(number):
            self.box = self._box(count)
            self.run = self._run(count)
            self.job = self._job(count)
        return {"box": self.box, "run": self.run, "job": self.job}

    def _box(self, count: int) -> Any:
        from django.utils import timezone

        from boxes.models import Box

        now = timezone.now()
        return Box.objects.create(
            conversation=self.conversation, box_id=f"bx_{self.name}{count}", label=f"{self.name}-{count}",
            state="archived", setup_status="done", created_at=now, stopped_at=now, stop_reason="ttl_expired",
            lifetime_seconds=60, settled_cost_microusd=100, usage_settled_at=now,
        )  # fmt: skip

    def _run(self, count: int) -> Any:
        from django.utils import timezone

        from runs.models import Run

        now = timezone.now()
        return Run.objects.create(
            conversation=self.conversation, conversation_box=self.box, requesting_principal={"type": "user"},
            command="make test", idempotency_key=f"{self.name}-{count}", run_directory="/runs", state="completed",
            exit_status=0, admitted_at=now, finished_at=now, deadline_at=now + timedelta(hours=1), output="ok\n",
        )  # fmt: skip

    def _job(self, count: int) -> Any:
        from work.services import cancel_job, create_job

        made = create_job(
            conversation_id=self.conversation.pk,
            owner_visitor_id=self.conversation.visitor_id,
            goal=f"goal {count}",
        )
        return cancel_job(made.pk)

    def paths(self) -> list[str]:
        return [
            "/boxes", "/boxes?state=archived", f"/boxes/{self.box.pk}", f"/boxes/{self.box.label}",
            "/runs", "/runs?state=completed", f"/runs?box={self.box.pk}", f"/runs/{self.run.pk}",
            "/jobs", "/jobs?status=cancelled", f"/jobs/{self.job.pk}",
        ]  # fmt: skip

    def p95(self, path: str) -> float:
        """Milliseconds that 95 of 100 answers stay within, after some that nobody counts."""
        for _ in range(5):
            assert self.client.get(f"/api/v1{path}").status_code == 200, path
        return quantile([self._seconds(path) for _ in range(REQUESTS)], P95) * 1000

    def _seconds(self, path: str) -> float:
        started = time.perf_counter()
        self.client.get(f"/api/v1{path}")
        return time.perf_counter() - started


def _title(path: str) -> str:
    """A path without ids: `/runs/...`."""
    name, _, query = path.partition("?")
    kind, _, reference = name[1:].partition("/")
    detail = "" if not reference else "/{label}" if "-" in reference and len(reference) < 36 else "/{id}"
    return f"GET /{kind}{detail}" + (f"?{query.partition('=')[0]}=" if query else "")


def _fill(rows: dict[str, Any]) -> None:
    """A million more of each, made of the owner's, a minute apart into the past."""
    back = "- n * interval '1 minute'"
    _multiply(rows["box"], box_id="'old_' || n", label="'old-' || n", created_at=f"t.created_at {back}",
              stopped_at=f"t.stopped_at {back}")  # fmt: skip
    _multiply(rows["run"], idempotency_key="'old-' || n", admitted_at=f"t.admitted_at {back}",
              deadline_at=f"t.deadline_at {back}", finished_at=f"t.finished_at {back}")  # fmt: skip
    _multiply(rows["job"], created_at=f"t.created_at {back}")
    _analyze()


def _multiply(row: Any, **changed: str) -> None:
    """A million copies of a row; `changed` are SQL expressions of columns, where `n` is the copy's number and `t` the row."""
    meta = type(row)._meta
    columns = [field.column for field in meta.concrete_fields]
    values = {**{column: f't."{column}"' for column in columns}, "id": "gen_random_uuid()", **changed}
    names = ", ".join(f'"{column}"' for column in columns)
    _execute(f"alter table {meta.db_table} disable trigger user")
    with without_indexes(meta.db_table):
        _execute(
            f"insert into {meta.db_table} ({names}) select {', '.join(values[column] for column in columns)}"  # noqa: S608
            f" from {meta.db_table} t, generate_series(1, {ROWS}) n where t.id = %s",
            [row.pk],
        )
    _execute(f"alter table {meta.db_table} enable trigger user")


def _analyze() -> None:
    _execute("vacuum analyze")


def _execute(statement: str, parameters: list[Any] | None = None) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
