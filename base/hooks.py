"""The only way by which a lower app reaches a higher one: what the higher app registered here at start.

Each hook is a named list of callables. Calling one calls all of them in the order of registration; what a hook returns
and whether it may raise is said beside it. `manage.py doctor` counts what is registered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec

import structlog

P = ParamSpec("P")
log = structlog.get_logger(__name__)


class Hook(Generic[P]):
    """A list of callables that never raises into its caller: a failing one is logged and the next is called."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name, self.meaning = name, meaning
        self._callables: list[Callable[P, Any]] = []

    def register(self, function: Callable[P, Any]) -> Callable[P, Any]:
        if function not in self._callables:
            self._callables.append(function)
        return function

    def registered(self) -> list[str]:
        return [f"{function.__module__}.{function.__qualname__}" for function in self._callables]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[Any]:
        """The answers of the callables that did not fail."""
        answers: list[Any] = []
        for function in self._callables:
            try:
                answers.append(function(*args, **kwargs))
            except Exception:
                log.exception("hook_failed", hook=self.name, function=function.__qualname__)
        return answers


# (incident: dict) an incident to record for staff or an owner
incident_reporter: Hook[[dict[str, Any]]] = Hook("incident_reporter", "records an incident")
# (box id) called in the transaction that stopped it
box_stopped: Hook[[Any]] = Hook("box_stopped", "a box became stopped")
# (box ids) -> {box id: time of last activity or None while something is alive}
box_activity: Hook[[list[Any]]] = Hook("box_activity", "tells when boxes were last in use")
# (run) called in the transaction that ended it
run_finished: Hook[[Any]] = Hook("run_finished", "a run reached a terminal state")
# (job) called in the transaction that ended it
job_finished: Hook[[Any]] = Hook("job_finished", "a job reached a terminal state")
# (run) -> the Git credential to hand over with this delivery, or None
run_credential: Hook[[Any]] = Hook("run_credential", "mints the credential that a run is dispatched with")
# (runs) -> {run id: what somebody wanted to be run}, of those runs whose command holds more than that
wanted_commands: Hook[[Any]] = Hook("wanted_commands", "tells what somebody wanted a run to do")
# (run, word) -> whether this word of its output is the run's own credential
credential_seen: Hook[[Any, str]] = Hook("credential_seen", "recognises a run's own credential")
# (job) -> the Git credential to hand over with this delivery of a delegation, or None
job_credential: Hook[[Any]] = Hook(
    "job_credential", "mints the credential that a delegation is handed over with"
)
machine_revoked: Hook[[Any]] = Hook("machine_revoked", "a paired machine was revoked")
# (machine) its owner switched scoped Git credentials off
machine_credentials_disabled: Hook[[Any]] = Hook(
    "machine_credentials_disabled", "a paired machine may get no Git credentials any more"
)
# (user or conversation) called before it is marked deleted
owner_deleted: Hook[[Any]] = Hook("owner_deleted", "an owner is being deleted")
# () -> a base.pump.Driver
drivers: Hook[[]] = Hook("drivers", "what the worker drives")
# () -> a work.tools.Tool, or several
tools: Hook[[]] = Hook("tools", "tools that agent jobs may call")

ALL: tuple[Hook[Any], ...] = (
    incident_reporter,
    box_stopped,
    box_activity,
    run_finished,
    job_finished,
    run_credential,
    wanted_commands,
    credential_seen,
    job_credential,
    machine_revoked,
    machine_credentials_disabled,
    owner_deleted,
    drivers,
    tools,
)
