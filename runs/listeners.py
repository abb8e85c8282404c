"""What the runs app does when a lower app speaks up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from base import hooks, notify
from base.leases import RELEASE
from base.pump import Driver
from runs.services.admission import DRIVER
from runs.services.cancelling import cancel_of_owner
from runs.states import ACTIVE, TERMINAL

_ACTIVE = ", ".join(f"'{state.value}'" for state in ACTIVE)
_TERMINAL = ", ".join(f"'{state.value}'" for state in TERMINAL)


def register() -> None:
    """Register with the hooks; called once at start."""
    hooks.drivers.register(run_driver)
    hooks.box_stopped.register(end_runs_of)
    hooks.box_activity.register(last_activity)
    hooks.owner_deleted.register(cancel_of_owner)


def run_driver() -> Driver:
    from runs.driver import RunDriver

    return RunDriver(recovers=True)


# The answer of a command that is in flight cannot count any more, so its lease is taken away.
_BOX_STOPPED = f"""
    with locked as (
        select id from box_runs
        where conversation_box_id = %s and (state in ({_ACTIVE}) or kill_confirmed = false)
        order by id for update)
    update box_runs set {RELEASE}, generation = generation + 1, next_step_at = clock_timestamp()
    where id in (select id from locked) and (state in ({_ACTIVE}) or kill_confirmed = false)
"""  # noqa: S608 - constants of ours


def end_runs_of(box_id: Any) -> None:
    """The box is stopped, and everything that ran on it: the worker ends its run at once."""
    with connection.cursor() as cursor:
        cursor.execute(_BOX_STOPPED, [box_id])
        if cursor.rowcount:
            notify.notify(notify.DUE, DRIVER)


_LAST_ACTIVITY = f"""
    select distinct on (conversation_box_id) conversation_box_id,
        case when state in ({_TERMINAL}) then coalesce(finished_at, started_at, admitted_at) end
    from box_runs where conversation_box_id = any(%s)
    order by conversation_box_id, admitted_at desc, id desc
"""  # noqa: S608


def last_activity(box_ids: Sequence[UUID]) -> dict[UUID, datetime | None]:
    """For each of these boxes that ever had a run: when its newest run was last active, None while it is alive."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_ACTIVITY, [list(box_ids)])
        return dict(cursor.fetchall())
