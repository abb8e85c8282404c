"""The dialogue with the model, made anew from the rows for each request. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from base.text import keep_first_bytes
from work import digests
from work.deep_work.instructions import report_request
from work.deep_work.views import JobView, StepView
from work.model_client import Call, CallOutput, Item, ModelText, UserText
from work.states import StepStatus

SHORTENED_BYTES = 512
LONGEST_NAME = 64
WRITTEN = "not_json"
WRITTEN_BYTES = 2_000
_NO_NAME = re.compile("[^a-zA-Z0-9_-]")
SHORTENED = "\n[shortened: this result is from long before]"


def dialogue(job: JobView, *, most_bytes: int, limit_code: str | None = None) -> tuple[Item, ...]:
    """The goal, then each call with what the model said before it and what came of it, oldest first.

    Outputs beyond `most_bytes` in all are shortened, the oldest first. With `limit_code` the report is asked for.
    """
    items: list[Item] = [UserText(_task(job))]
    text, position = job.text.encode(), 0
    for step, output in zip(job.steps, _outputs(job, most_bytes), strict=True):
        said = text[position : step.report_offset].decode("utf-8", "ignore").strip()
        items += [ModelText(said)] if said else []
        items += [_call(step), CallOutput(step.call_id, output)]
        position = step.report_offset
    if limit_code is not None:
        items.append(UserText(report_request(limit_code)))
    return tuple(items)


def shown(job: JobView, most_bytes: int) -> list[str]:
    """The texts that the model is shown."""
    texts: list[str] = []
    for item in dialogue(job, most_bytes=most_bytes):
        match item:
            case UserText(text) | ModelText(text) | CallOutput(_, text):
                texts.append(text)
            case Call(_, name, arguments):
                texts += [name, arguments]
    return texts


def _call(step: StepView) -> Call:
    """The call as servers take it back: they refuse a dialogue with a name that no tool can have, or with arguments that are
    no JSON object, although a model wrote them."""
    name = _NO_NAME.sub("_", step.tool_name)[:LONGEST_NAME]
    return Call(
        step.call_id, name, step.arguments if _is_object(step.arguments) else _as_object(step.arguments)
    )


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _as_object(arguments: str) -> str:
    return digests.canonical(
        {WRITTEN: keep_first_bytes(arguments, WRITTEN_BYTES)} if arguments.strip() else {}
    )


def output_of(step: StepView) -> str:
    """What the model is told of a call that has ended: its result, or how it failed."""
    if step.status == StepStatus.SUCCEEDED:
        return digests.canonical(step.result)
    return digests.canonical({"status": step.status.value, "error": step.error or {}})


def _task(job: JobView) -> str:
    return f"{job.goal}\n\nContext: {job.context_hint}" if job.context_hint.strip() else job.goal


def _outputs(job: JobView, most_bytes: int) -> list[str]:
    left, outputs = most_bytes, list[Any]()
    for step in reversed(job.steps):
        output = output_of(step)
        size = len(output.encode())
        if size > left and size > SHORTENED_BYTES:
            output = keep_first_bytes(output, SHORTENED_BYTES) + SHORTENED
        left -= size
        outputs.append(output)
    return outputs[::-1]
