"""A reconcile pass against a provider that answers after 50 ms: how long it takes, what it asks, what it holds.

Beside it, in the same run, the plain way: one box after the other. What a pass costs must follow the live boxes, so it
is measured again beside a million settled ones.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.database import throwaway_database
from benchmarks.results import Row, report
from benchmarks.slow_provider import box_id

LATENCY_SECONDS = 0.05
REPEATS = 3
SETTLED_ROWS = 1_000_000
MARKER = "bench-boxes"
MEBIBYTE = 1 << 20


def main(*, json: bool) -> None:
    """Measure and print."""
    with throwaway_database():
        rows = [*_passes(), *_actions(), *_beside_history()]
    report("reconcile", rows, as_json=json)


def _passes() -> Iterator[Row]:
    for boxes, plain, targets in (
        (100, True, {}),
        (1000, True, {"get": "at most 3 s", "list": "at most 0.7 s"}),
        (10_000, False, {"list": "under 7 s"}),
    ):
        with _fleet(boxes):
            baseline = _seconds(_plain_pass, repeats=1) if plain else None
            for evidence in ("get", "list"):
                _set(reconcile_evidence=evidence)
                value = _seconds(_pass, repeats=REPEATS if boxes <= 1000 else 1)
                yield Row(f"{boxes} boxes, {evidence}", value, "s", baseline, targets.get(evidence, ""))
            if boxes == 1000:
                yield Row("1000 boxes, get: SQL statements", _statements(), "", None, "at most 20")
                _set(reconcile_evidence="list")
                yield Row("1000 boxes, list: SQL statements", _statements(), "", None, "at most 20")
            if boxes == 10_000:
                yield Row("10000 boxes, list: memory", _memory("list"), "MiB", None, "under 300 MiB")


def _actions() -> Iterator[Row]:
    """Every tenth box is over its time."""
    with _fleet(1000, expired=100):
        _set(reconcile_evidence="list")
        quiet = _statements_of_healthy()
        started = time.monotonic()
        statements = _statements()
        yield Row("1000 boxes, list, 100 stops", time.monotonic() - started, "s")
        yield Row("SQL statements a stop", (statements - quiet) / 100, "", None, "a few")


def _beside_history() -> Iterator[Row]:
    with _fleet(1000):
        _set(reconcile_evidence="list")
        before = _seconds(_pass, repeats=2 * REPEATS + 1)
        _add_history()
        after = _seconds(_pass, repeats=2 * REPEATS + 1)
    yield Row(
        f"1000 boxes, list, beside {SETTLED_ROWS:,} settled rows", after, "s", before, "within 10% of none"
    )


# what is measured


def _pass() -> None:
    from boxes.reconciler import reconcile

    result = reconcile()
    assert not result.incomplete, result.as_dict()


def _plain_pass() -> None:
    from benchmarks.baseline.sequential_pass import reconcile

    reconcile()


def _seconds(work: Callable[[], None], *, repeats: int) -> float:
    """The median of so many, after one that nobody counts where there are several."""
    if repeats > 1:
        work()
    return statistics.median(_timed(work) for _ in range(repeats))


def _timed(work: Callable[[], None]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _statements() -> int:
    """SQL statements of one pass."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        _pass()
    return len(queries)


def _statements_of_healthy() -> int:
    """The same while nobody's time is up."""
    from boxes.conf import box_api

    conf, day = box_api(), 86_400
    _set(ttl_seconds=day, idle_timeout_seconds=day)
    try:
        return _statements()
    finally:
        _set(ttl_seconds=conf.ttl_seconds, idle_timeout_seconds=conf.idle_timeout_seconds)


def _memory(evidence: str) -> float:
    """The largest resident size, in MiB, of a process of its own that makes one pass."""
    from django.conf import settings

    environment = os.environ | {
        "BOX_API_BASE_URL": settings.BOX_API["base_url"],
        "BOX_API_KEY": "bench",
        "BOX_OWNERSHIP_MARKER": MARKER,
        "BOX_RECONCILE_EVIDENCE": evidence,
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "reconcile_boxes", "--json"], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, "the pass failed"
    return used.ru_maxrss * 1024 / MEBIBYTE


# what it is measured on


@contextmanager
def _fleet(boxes: int, *, expired: int = 0) -> Iterator[None]:
    """So many boxes in the ledger and at the provider, the first of them over their time."""
    provider = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.slow_provider", str(boxes), MARKER, str(LATENCY_SECONDS)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert provider.stdout is not None
        _set(base_url=provider.stdout.readline().strip(), api_key="bench", ownership_marker=MARKER)
        _write_rows(boxes, expired)
        yield
    finally:
        provider.kill()
        provider.wait()
        _forget_rows()


def _set(**values: Any) -> None:
    from django.conf import settings

    settings.BOX_API = settings.BOX_API | values


def _write_rows(boxes: int, expired: int) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from boxes.models import Box
    from conversations.services import ensure_conversation

    conversation, now = ensure_conversation("bench"), timezone.now()
    Box.objects.bulk_create(
        Box(
            conversation=conversation,
            box_id=box_id(number),
            label=f"box-{number}",
            state="ready",
            setup_status="done",
            created_at=now - timedelta(hours=2 if number < expired else 0),
        )
        for number in range(boxes)
    )
    _execute("vacuum analyze conversation_boxes")


def _add_history() -> None:
    """Settled rows as years of service leave them."""
    from conversations.services import ensure_conversation

    _execute("alter table conversation_boxes disable trigger user")
    _execute(
        "insert into conversation_boxes (id, conversation_id, box_id, label, state, setup_status, created_at, budgeted,"
        " estimated_burn_rate_microusd, create_attempts, create_unknown, ready_checks, provision_failures, stopped_at,"
        " stop_reason, lifetime_seconds, settled_cost_microusd, usage_settled_at, settlement_attempts,"
        " reconciliation_failures, undone_sightings, generation)"
        " select gen_random_uuid(), %s, 'old_' || n, 'old-' || n, 'archived', 'done', now() - n * interval '1 minute',"
        " false, 0, 0, false, 0, 0, now() - n * interval '1 minute', 'ttl_expired', 3600, 10000, now(), 0, 0, 0, 1"
        " from generate_series(1, %s) n",
        [ensure_conversation("bench").id, SETTLED_ROWS],
    )
    _execute("alter table conversation_boxes enable trigger user")
    _execute("vacuum analyze conversation_boxes")


def _forget_rows() -> None:
    _execute("truncate conversation_boxes, conversation_boxes_history cascade")


def _execute(statement: str, parameters: list[Any] | None = None) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
