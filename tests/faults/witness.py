"""Whoever looks at the rows while everything goes on: what has ended must stay as it was seen first."""

from __future__ import annotations

import threading
from typing import Any

import psycopg

from tests.faults.house import House

ENDED = {
    "conversation_boxes": "select id::text, stop_reason, lifetime_seconds from conversation_boxes where stopped_at is not null",
    "settled boxes": "select id::text, settled_cost_microusd from conversation_boxes where usage_settled_at is not null",
    "box_runs": "select id::text, state, exit_status, exit_signal, failure_reason, timed_out, md5(output), last_output_offset"
    " from box_runs where finished_at is not null",
    "work_jobs": "select id::text, status, error_code, md5(report), usage::text, generation from work_jobs"
    " where completed_at is not null",
    "forge_assignments": "select id::text, state, failure_reason, terminal_commit, run_id::text from forge_assignments"
    " where finished_at is not null",
}


class Witness(threading.Thread):
    """Looks every `seconds` until `leave`; `changed` says what it saw change of rows that had ended, or go."""

    def __init__(self, made: House, seconds: float = 1.5) -> None:
        super().__init__(name="witness", daemon=True)
        self.changed: list[str] = []
        self._made, self._seconds = made, seconds
        self._seen: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._leaving = threading.Event()

    def run(self) -> None:
        while not self._leaving.wait(self._seconds):
            try:
                self.look()
            except psycopg.OperationalError:
                continue  # the database is just being restarted

    def leave(self) -> None:
        self._leaving.set()

    def look(self) -> None:
        """One look at everything that has ended, as one moment shows it."""
        with self._made.connect() as link:
            link.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            for what, query in ENDED.items():
                self._compare(what, {row[0]: row[1:] for row in link.execute(query).fetchall()})

    def _compare(self, what: str, rows: dict[str, tuple[Any, ...]]) -> None:
        for (table, row_id), before in list(self._seen.items()):
            if table == what and rows.get(row_id) != before:
                self.changed.append(f"{what} {row_id}: {before} became {rows.get(row_id)}")
        self._seen |= {(what, row_id): values for row_id, values in rows.items()}
