"""The credential that a run is dispatched with: asked for in the main thread just before, kept only in the task."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from base import hooks
from runs.decide import End, Send, Step, Write
from runs.driver import settle
from runs.driver.task import Task
from runs.models import Run
from runs.scripts import GitCredential
from runs.states import RunState

log = structlog.get_logger(__name__)

CREDENTIAL_UNAVAILABLE = "credential_unavailable"


def handed_over(tasks: Sequence[Task]) -> list[Task]:
    """The tasks, dispatches with their credential. An assignment's run without one is ended instead of sent: it could
    work, but not push."""
    dispatches = {
        task.id for task in tasks if isinstance(task.action, Send) and task.action.step == Step.DISPATCH
    }
    wanting = [task for task in tasks if task.id in dispatches and task.principal.get("type") == "assignment"]
    if not wanting:
        return list(tasks)
    given = {task.id: _credential(task) for task in wanting}
    refused = [task.with_(action=_refusal()) for task in wanting if given[task.id] is None]
    settle.settle_undone(refused)
    without = {task.id for task in refused}
    return [
        task.with_(credential=given[task.id]) if given.get(task.id) else task
        for task in tasks
        if task.id not in without
    ]


def _credential(task: Task) -> GitCredential | None:
    run = Run.objects.select_related("conversation_box").get(pk=task.id)
    found = [answer for answer in hooks.run_credential(run) if answer is not None]
    if not found:
        log.warning("run_without_credential", run=str(task.id))
        return None
    credential: GitCredential = found[0]
    return credential


def _refusal() -> Write:
    return Write(None, end=End(RunState.FAILED, CREDENTIAL_UNAVAILABLE))
