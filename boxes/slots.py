"""Slots: when a periodic pass is due, and who runs it.

A slot is a row. Claiming it is one statement, so of several workers and scheduled tasks that find it due, one runs the pass
and the others go on. A good pass moves the slot by its interval; a failed one is tried again after 5 s, doubling to
300 s. A claimed slot whose worker died is free at once (see `base.leases`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from base import leases, measures
from base.errors import CodedError
from base.pump import Holder
from base.sql import as_json
from boxes.models import ScheduleSlot

FIRST_RETRY_MS = 5_000
LONGEST_RETRY_MS = 300_000
LEASE_SECONDS = 900  # a pass may be slow; a worker that dies frees its slot at once anyway


@dataclass(frozen=True)
class ClaimedSlot:
    name: str
    generation: int


def ensure(name: str, *, interval_ms: int, initial_delay_ms: int | None = None) -> ScheduleSlot:
    """The slot with this interval. Made if missing, first due after the initial delay (the interval by default).

    A changed interval takes effect at once: a slot that is due later than that is moved forward.
    """
    delay = interval_ms if initial_delay_ms is None else initial_delay_ms
    with connection.cursor() as cursor:
        cursor.execute(
            """
            insert into schedule_slots (name, interval_ms, initial_delay_ms, next_at, failures, generation)
            values (%(name)s, %(interval)s, %(delay)s,
                    clock_timestamp() + make_interval(secs => %(delay)s / 1000.0), 0, 0)
            on conflict (name) do update set interval_ms = excluded.interval_ms,
                initial_delay_ms = excluded.initial_delay_ms,
                next_at = least(schedule_slots.next_at,
                                clock_timestamp() + make_interval(secs => excluded.interval_ms / 1000.0))
            where schedule_slots.interval_ms <> excluded.interval_ms
               or schedule_slots.initial_delay_ms <> excluded.initial_delay_ms
            """,
            {"name": name, "interval": interval_ms, "delay": delay},
        )
    return ScheduleSlot.objects.get(name=name)


def bring_forward(name: str, *, within_ms: int) -> bool:
    """Have a slot due within this time, whatever its interval: much may have happened while no worker ran.

    False, and nothing changes, if it is due sooner anyway, if a pass runs, has never run (the initial delay stands) or failed
    last time (the time before the next try stands).
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update schedule_slots slot
            set next_at = clock_timestamp() + make_interval(secs => %(within)s / 1000.0)
            where slot.name = %(name)s and slot.finished_at is not null and slot.failures = 0
              and slot.next_at > clock_timestamp() + make_interval(secs => %(within)s / 1000.0)
              and {leases.free("slot")}
            """,  # noqa: S608 - the fragment is a constant of ours
            {"within": within_ms, "name": name},
        )
        return bool(cursor.rowcount == 1)


def claim(name: str, holder: Holder) -> ClaimedSlot | None:
    """The slot, if it is due and nobody runs it; None otherwise."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update schedule_slots slot set {leases.take("slot")}, started_at = clock_timestamp()
            where slot.name = %s and slot.next_at <= clock_timestamp() and {leases.free("slot")}
            returning slot.generation
            """,  # noqa: S608 - both fragments are constants of ours
            [holder.owner, LEASE_SECONDS, name],
        )
        row = cursor.fetchone()
    return ClaimedSlot(name, row[0]) if row else None


def finish(
    claimed: ClaimedSlot, outcome: dict[str, Any], *, failed: bool, quiet_seconds: float = 0.0
) -> bool:
    """Give the slot back and say when it is due next, at least `quiet_seconds` from now.

    False if the lease was lost meanwhile: nothing is written.
    """
    measures.PASSES.labels(claimed.name, "failed" if failed else "ok").inc()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            update schedule_slots slot set {leases.RELEASE}, finished_at = clock_timestamp(), outcome = %(outcome)s,
                failures = case when %(failed)s then slot.failures + 1 else 0 end,
                next_at = clock_timestamp() + make_interval(secs => greatest(%(quiet)s, case when %(failed)s
                    then least(%(longest)s, %(first)s * power(2, least(slot.failures, 10))) else slot.interval_ms end / 1000.0))
            where slot.name = %(name)s and slot.generation = %(generation)s and slot.lease_expires_at is not null
            """,  # noqa: S608 - the fragment is a constant of ours
            {
                "outcome": as_json(outcome),
                "failed": failed,
                "quiet": float(quiet_seconds),
                "longest": LONGEST_RETRY_MS,
                "first": FIRST_RETRY_MS,
                "name": claimed.name,
                "generation": claimed.generation,
            },
        )
        return bool(cursor.rowcount == 1)


def run_if_due(name: str, holder: Holder, work: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Run `work` if the slot is due and free, and settle the slot by how it went. Returns what it counted, or None.

    An expected failure of `work` (a CodedError) is the outcome `{"error": code}`; anything else is raised after the
    slot was put back. For as long as somebody asked to be left alone (`quiet_seconds` of the outcome,
    `retry_after_seconds` of the error) the slot is not due.
    """
    claimed = claim(name, holder)
    if claimed is None:
        return None
    try:
        outcome = work()
    except CodedError as error:
        outcome = {"error": error.code}
        quiet = getattr(error, "retry_after_seconds", None) or 0.0
        finish(claimed, outcome, failed=True, quiet_seconds=quiet)
        return outcome
    except Exception as error:
        finish(claimed, {"error": type(error).__name__}, failed=True)
        raise
    finish(claimed, outcome, failed=False, quiet_seconds=outcome.get("quiet_seconds", 0))
    return outcome


def seconds_until_due(name: str) -> float | None:
    """Until the slot is due; negative if it is late; None if there is no such slot."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select extract(epoch from next_at - clock_timestamp()) from schedule_slots where name = %s",
            [name],
        )
        row = cursor.fetchone()
    return float(row[0]) if row else None
