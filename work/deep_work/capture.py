"""What is kept of what drives a job."""

from __future__ import annotations

from work.conf import WorkSettings
from work.deep_work.instructions import instruction_digest
from work.services import Captured
from work.tools import Registry


def captured(conf: WorkSettings, registry: Registry) -> Captured:
    """What drives jobs from now on, to be kept on each that is claimed."""
    return Captured(
        model_id=conf.model[:200],
        instruction_digest=instruction_digest(),
        tool_catalog_digest=registry.digest(),
    )
