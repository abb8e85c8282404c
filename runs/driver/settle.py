"""Writing what commands told: one statement for all polls without news, one transaction for everything else.

Every write names the generation of its claim, so a worker that slept through its lease writes nothing; it also leaves a
run alone that somebody ended meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from base import leases
from base.faults import declare, fault_point
from base.pump import Outcome
from runs import ending
from runs.decide import Hold, Observation, Rest, Step, Trouble, TroubleKind, Write, decide
from runs.driver.task import Reply, Task
from runs.log_store import RunLog
from runs.models import Run

log = structlog.get_logger(__name__)

SETTLING = declare("runs.settling", "a batch of answers is about to be written")
WRITTEN = declare("runs.written", "a batch of answers is written, not committed")
SETTLED = declare("runs.settled", "a batch of answers is committed")

_COUNTERS = {"step_failures", "quiet_polls", "dead_sightings", "state"}
"""What a poll without news may change besides the next time; `state` only to what the row has already."""

Judged = tuple[Task, Reply, Write]


def settle(outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes of these tasks."""
    fault_point(SETTLING)
    judged = [_judged(outcome) for outcome in outcomes]
    quiet = [entry for entry in judged if _is_quiet(*entry)]
    news = [entry for entry in judged if not _is_quiet(*entry)]
    if quiet:
        _write_quiet(quiet)
    if news:
        write_news(news)
    fault_point(SETTLED)


def settle_undone(tasks: Sequence[Task]) -> None:
    """Write the actions of tasks that need no command. A row that cannot be written costs only itself: it keeps its lease."""
    nothing = Reply(Observation(Step.POLL))
    judged = [(task, nothing, _as_write(task)) for task in tasks]
    if not judged:
        return
    try:
        write_news(judged)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        if len(tasks) == 1:
            log.exception("run_cannot_be_written", run=str(tasks[0].id))
            return
        for task in tasks:
            settle_undone([task])


@transaction.atomic
def write_news(judged: Sequence[Judged]) -> None:
    """Write each of these if the task still holds its run: output, changes, end, and a wake for whoever watches it."""
    rows = _locked([task for task, _, _ in judged])
    written = []
    for task, reply, write in judged:
        run = rows.get(task.id)
        if run is None or run.generation != task.generation or (run.is_terminal and not task.run.is_terminal):
            log.info("run_lease_lost", run=str(task.id), step=reply.seen.step)
            continue
        _apply(run, task, reply, write)
        written.append(run.pk)
    if written:
        ending.wake(written)
    fault_point(WRITTEN)


def _judged(outcome: Outcome) -> Judged:
    """A command that broke in our own code counts as unanswered; it is logged, and asked again."""
    task: Task = outcome.task
    reply: Reply = outcome.answer or _broken(task, outcome.error)
    write = decide(task.run, reply.seen, task.now, task.policy)
    assert isinstance(write, Write)
    return task, reply, write


def _broken(task: Task, error: Exception | None) -> Reply:
    step = getattr(task.action, "step", Step.POLL)
    log.error("run_step_broke", run=str(task.id), step=step, exc_info=error)
    return Reply(Observation(step, trouble=Trouble(TroubleKind.UNKNOWN, "box_request_failed")))


def _is_quiet(task: Task, reply: Reply, write: Write) -> bool:
    changes = write.changes
    return (
        write.end is None
        and write.next_in is not None
        and not reply.data
        and set(changes) <= _COUNTERS
        and changes.get("state", task.run.state) == task.run.state
        and reply.seen.log_size in (None, task.run.log_size)
    )


# A run whose end was asked for since the claim is due at once. Rows of several runs are locked in the order of their ids
# everywhere, so that no two of these statements can wait for each other.
_QUIET = f"""
    with locked as (select id from box_runs where id = any(%(ids)s::uuid[]) order by id for update)
    update box_runs run set {leases.RELEASE},
        next_step_at = case
            when run.cancellation_requested_at is not null and not seen.cancelled then clock_timestamp()
            else clock_timestamp() + make_interval(secs => seen.pause) end,
        step_failures = seen.failures, quiet_polls = seen.quiet, dead_sightings = seen.dead
    from unnest(%(ids)s::uuid[], %(generations)s::bigint[], %(pauses)s::float8[], %(failures)s::int[], %(quiet)s::int[],
                %(dead)s::int[], %(cancelled)s::bool[])
        as seen(id, generation, pause, failures, quiet, dead, cancelled)
    where run.id in (select id from locked) and run.id = seen.id and run.generation = seen.generation
"""  # noqa: S608 - a constant of ours


def _write_quiet(judged: Sequence[Judged]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            _QUIET,
            {
                "ids": [task.id for task, _, _ in judged],
                "generations": [task.generation for task, _, _ in judged],
                "pauses": [write.next_in for _, _, write in judged],
                "failures": [
                    write.changes.get("step_failures", task.run.step_failures) for task, _, write in judged
                ],
                "quiet": [
                    write.changes.get("quiet_polls", task.run.quiet_polls) for task, _, write in judged
                ],
                "dead": [
                    write.changes.get("dead_sightings", task.run.dead_sightings) for task, _, write in judged
                ],
                "cancelled": [task.run.cancellation_requested_at is not None for task, _, _ in judged],
            },
        )


def _locked(tasks: Sequence[Task]) -> dict[object, Run]:
    """The rows, locked in the order of their ids so that two workers cannot wait for each other."""
    ids = [task.id for task in tasks]
    rows = Run.objects.select_for_update(of=("self",)).select_related("conversation_box")
    return {run.pk: run for run in rows.filter(pk__in=ids).order_by("pk")}


def _apply(run: Run, task: Task, reply: Reply, write: Write) -> None:
    was_terminal, output = task.run.is_terminal, RunLog(run)
    if reply.seen.log_size is not None and not was_terminal:
        run.log_size = max(run.log_size, reply.seen.log_size)
    if reply.data and not was_terminal and not output.take(reply.offset, reply.data):
        # What was held back could not be opened any more: the log is read again from there before anything is decided.
        write = Write(0.0)
    for name, value in write.changes.items():
        setattr(run, name, value)
    asked_meanwhile = run.cancellation_requested_at is not None and task.run.cancellation_requested_at is None
    pause = 0.0 if asked_meanwhile and write.end is None else write.next_in
    run.next_step_at = None if pause is None else task.now + timedelta(seconds=pause)
    run.lease_owner = run.lease_expires_at = None
    if write.end is not None:
        ending.end(output, write.end.state, write.end.reason, task.now, missing_bytes=write.end.missing_bytes)
    ending.save(output, was_terminal=was_terminal)


def _as_write(task: Task) -> Write:
    """The action of a task that needs no command. What was not sent gives the right to dispatch back."""
    match task.action:
        case Hold(until):
            write = Write(max(0.0, (until - task.claimed_at).total_seconds()))
        case Rest():
            write = Write(None)
        case Write():
            write = task.action
        case _:
            raise AssertionError("a command was not sent")
    if task.run.may_dispatch:
        write.changes["dispatch_attempted_at"] = None
    return write
