"""The arguments of a tool call: what is kept of them for everybody who may see the job, and what its tool gets.

A call is carried out from its committed row, also by a worker that took the job over. So where the model wrote a secret, the row
shows the text without it, and keeps the exact one sealed until the call has ended.
"""

from __future__ import annotations

import json
from typing import Any

import structlog

from base.redaction import redact, redact_mapping
from base.sealing import SealBroken, seal, unseal
from base.text import keep_first_bytes, storable
from work import digests, limits
from work.models import JobStep

log = structlog.get_logger(__name__)

PURPOSE = "tool arguments"


def shown(written: str) -> str:
    """The text without secrets; exactly what the model wrote where it holds none."""
    clean = _without_secrets(written)
    return written if clean == written else keep_first_bytes(clean, limits.ARGUMENT_BYTES)


def kept(written: str) -> dict[str, Any]:
    """The fields of the row: what it shows, and the exact text sealed where that is another."""
    clean = shown(written)
    return {
        "arguments": clean,
        "sealed_arguments": None if clean == written else seal(PURPOSE, written.encode()),
    }


def exact(step: JobStep) -> str | None:
    """What the tool of an open call gets; None where it cannot be opened, since the key of the installation is another now."""
    if step.sealed_arguments is None:
        return step.arguments
    try:
        return unseal(PURPOSE, bytes(step.sealed_arguments)).decode()
    except SealBroken:
        log.error("tool_arguments_cannot_be_opened", step=str(step.pk))
        return None


def _without_secrets(written: str) -> str:
    try:
        value: Any = json.loads(written)
        clean = redact_mapping({"": value})[""]
        return storable(digests.canonical(clean)) if clean != value else redact(written)
    except (ValueError, RecursionError):
        return redact(written)
