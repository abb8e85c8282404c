"""How long whole logs are kept. The row with the end of the output stays."""

from __future__ import annotations

from base.retention import Rule, before
from boxes.conf import box_api
from runs.states import TERMINAL

_TERMINAL = ", ".join(f"'{state.value}'" for state in TERMINAL)
_ENDED_BEFORE = f"""exists (select 1 from box_runs run where run.id = r.run_id and run.state in ({_TERMINAL})
    and run.finished_at < clock_timestamp() - make_interval(days => %(days)s))"""  # noqa: S608 - constants of ours

LOGS = Rule(
    "pieces of logs",
    "box_run_log_chunks",
    "id",
    f"{before('created_at')} and {_ENDED_BEFORE}",
    lambda: box_api().run_log_retention_days,
)


def prune_logs() -> int:
    """Delete the whole logs of runs that ended longer ago than the setting says; returns how many pieces."""
    return LOGS.forget()
