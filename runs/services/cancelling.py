"""Asking for the end of a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection, transaction

from accounts.models import User
from base import notify
from conversations.models import Conversation
from runs import ending
from runs.models import Run
from runs.services.admission import DRIVER
from runs.states import ACTIVE

# A poll in flight is overtaken: its lease is taken away and its generation passed, since a poll may wait on the box for
# seconds. A dispatch in flight is waited for, because its answer tells what there is to kill; whoever settles it finds
# the request and makes the run due.
_POLLED = "(state <> 'admitted' and kill_confirmed is null and exit_status is null)"
_REQUEST = f"""
    with locked as (select id from box_runs where id = any(%(ids)s::uuid[]) order by id for update)
    update box_runs set cancellation_requested_at = clock_timestamp(),
        generation = case when {_POLLED} then generation + 1 else generation end,
        lease_owner = case when {_POLLED} then null else lease_owner end,
        lease_expires_at = case when {_POLLED} then null else lease_expires_at end,
        next_step_at = case when {_POLLED} or lease_expires_at is null then clock_timestamp() else next_step_at end
    where id in (select id from locked) and state = any(%(active)s) and cancellation_requested_at is null
    returning id
"""  # noqa: S608 - a constant of ours


def cancel(run: Run) -> Run:
    """Ask for the end of a run; returns it as it is now, with its box. A run that has ended is returned unchanged.

    The request is durable at once and its first time is kept; a worker kills the run until that is confirmed. The run
    becomes `cancelled` only then, and not if it had ended by itself before.
    """
    request_cancellation([run.pk])
    return Run.objects.select_related("conversation_box").get(pk=run.pk)


def cancel_of_owner(owner: User | Conversation | Any) -> int:
    """Ask for the end of every living run of a user or a conversation; returns how many."""
    runs = Run.objects.filter(state__in=ACTIVE)
    if isinstance(owner, Conversation):
        runs = runs.filter(conversation=owner)
    elif isinstance(owner, User):
        runs = runs.filter(conversation__visitor__user=owner)
    else:
        return 0
    return request_cancellation(list(runs.values_list("pk", flat=True)))


@transaction.atomic
def request_cancellation(ids: list[UUID]) -> int:
    """Note the request on each of these runs that is alive and has none yet; returns on how many."""
    with connection.cursor() as cursor:
        cursor.execute(_REQUEST, {"ids": ids, "active": [state.value for state in ACTIVE]})
        requested = [row[0] for row in cursor.fetchall()]
    if requested:
        notify.notify(notify.DUE, DRIVER)
        ending.wake(requested)
    return len(requested)
