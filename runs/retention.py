"""How long whole logs are kept. The row with the end of the output stays."""

from __future__ import annotations

from django.db import connection

from runs.states import TERMINAL

BATCH = 500

_TERMINAL = ", ".join(f"'{state.value}'" for state in TERMINAL)
_PRUNE = f"""
    delete from box_run_log_chunks where id in (
        select chunk.id from box_run_log_chunks chunk join box_runs run on run.id = chunk.run_id
        where run.state in ({_TERMINAL}) and run.finished_at < clock_timestamp() - make_interval(days => %s)
          and chunk.created_at < clock_timestamp() - make_interval(days => %s)
        order by chunk.created_at limit %s for update of chunk skip locked)
"""  # noqa: S608 - a constant of ours


def prune_logs(*, older_than_days: int) -> int:
    """Delete chunks of runs that ended longer ago, in short statements; returns how many. The oldest go first."""
    deleted = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_PRUNE, [older_than_days, older_than_days, BATCH])
            count = int(cursor.rowcount)
        deleted += count
        if count < BATCH:
            return deleted
