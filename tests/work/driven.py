"""Deep-work jobs, driven with a model and tools of which the test knows what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.work.scripted import ScriptedModel, asks, one_after_the_other, registry, said
from work.model_client import Text
from work.models import Job
from work.worker import drive

Settings = Callable[..., None]


def done(job: Job, *answers: list[Any], tools: Any = None, **keywords: Any) -> tuple[Job, ScriptedModel]:
    """The job, driven with a model that gives these answers."""
    model = ScriptedModel(one_after_the_other(*answers))
    return drive(job.pk, client=model, registry=tools or registry(), **keywords), model


REPORT = said(Text("What I found."))
CALL = said(asks("x", "call-1"))


def raising(error: Exception) -> Callable[[Any], Any]:
    def execute(call: Any) -> Any:
        raise error

    return execute


def registry_of(*tools: Any) -> Any:
    from work.tools import Registry

    return Registry(tools)


def succeeded(step: Any) -> dict[str, Any]:
    from tests.work.conftest import outcome_of

    return outcome_of(step)
