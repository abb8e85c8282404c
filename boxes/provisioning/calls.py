"""The one call to the provider that a step needs. No database in here: it runs in threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from base.faults import declare, fault_point
from boxes.client import BoxClient, ProviderBox
from boxes.errors import ProviderCode, Unknown
from boxes.provisioning.steps import Step
from boxes.states import StopReason
from boxes.stopping import StopAnswer, call_stop

LONGEST_BOX_ID = 200

CALLED = declare("boxes.create.called", "the provider has made the box, its id is written nowhere")
NAMED = declare("boxes.create.named", "the box has our name, the row does not say so")


@dataclass(frozen=True, slots=True)
class Task:
    """One step of one row, with all it needs; `generation` is that of the lease under which it was decided."""

    pk: UUID
    generation: int
    step: Step
    box_id: str | None
    create_key: str | None
    create_body: Mapping[str, Any]
    marker: str
    stop_reason: StopReason
    failures: int
    had_unknown: bool
    setup_script: bool


def perform(provider: BoxClient, task: Task) -> ProviderBox | StopAnswer:
    """Carry out the step's call. Raises ProviderError."""
    if task.step == Step.CREATE:
        return _create(provider, task)
    assert task.box_id is not None
    if task.step == Step.MARK:
        named = provider.patch(task.box_id, name=task.marker)
        fault_point(NAMED)
        return named
    if task.step == Step.STOP:
        return call_stop(provider, task.box_id)
    return provider.get(task.box_id)


def _create(provider: BoxClient, task: Task) -> ProviderBox:
    """Raises Unknown also for an id that the ledger cannot hold: the box is there, and asking again may tell its id."""
    assert task.create_key is not None
    made = provider.create(task.create_key, **task.create_body)
    fault_point(CALLED)
    if len(made.id) > LONGEST_BOX_ID:
        raise Unknown(ProviderCode.RESPONSE_INVALID, log_detail="an id that is too long")
    return made
